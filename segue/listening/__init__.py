"""How programs are listened to over HTTP: what every door has in common, whatever stands behind it."""
