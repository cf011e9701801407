"""The door for programs that speak as they would to OpenAI."""
