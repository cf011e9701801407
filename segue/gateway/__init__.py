"""The gateway: messages of platforms become turns in lanes, and what is answered gets back to where it came from."""
