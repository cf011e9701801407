"""The only folder that speaks SQL: one store, written once for every database, over one engine per database."""
