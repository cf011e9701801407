"""What programs ask the gateway, and what they are told: JSON-RPC, whatever carries it."""
