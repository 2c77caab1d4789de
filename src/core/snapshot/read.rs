//! Text to snapshot: one `List`, a stream of documents, JSON or YAML.
