//! Why something can not be read, and what reading came to.

/// Why nothing of an input was used.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("there is nothing in it")]
    Empty,
    #[error("the gzip data is cut off at byte {byte}; nothing of it was used")]
    GzipCutOff { byte: usize },
    #[error("the gzip data is damaged after {bytes_unpacked} unpacked bytes; nothing of it was used")]
    Gzip { bytes_unpacked: usize, source: std::io::Error },
    #[error("it unpacks to more than {limit_bytes} bytes")]
    TooLarge { limit_bytes: u64 },
    #[error("it holds more than {limit} objects")]
    TooMany { limit: usize },
    #[error("line {line}: an object of more than {limit_bytes} bytes, or so much between two")]
    ObjectTooLarge { line: usize, limit_bytes: u64 },
    #[error("byte {byte} is not text: neither UTF-8 nor UTF-16")]
    NotText { byte: usize },
    #[error("it is cut off at byte {byte} (line {line}); nothing of it was used")]
    CutOff { byte: usize, line: usize },
    #[error("line {line}, column {column}: {problem}")]
    Syntax { line: usize, column: usize, problem: String },
    #[error("{place}: no `kind`: not a Kubernetes object, or cut off; nothing of it was used")]
    NoKind { place: String },
    #[error("{object}: {problem}")]
    Object {
        /// `Pod shop/web-1 (line 12)`
        object: String,
        /// `spec.containers[0].ports: invalid type: ...`
        problem: String,
    },
    #[error("it is an answer of the API server, not objects: {answer}")]
    Status {
        /// `pods is forbidden (Forbidden)`
        answer: String,
    },
    #[error("it is a table for people to read, not objects")]
    Table,
    #[error("it is a page of HTML, not objects")]
    Page,
    #[error("it is a message, not objects: {line}")]
    Message { line: String },
    #[error("no object in it is of a kind that planning uses, only {kinds}")]
    NothingUsed {
        /// `2 x v1/ConfigMap`
        kinds: String,
    },
    #[error("{place}: lists inside lists, {limit} deep")]
    TooDeep { place: String, limit: usize },
}

/// What reading an input came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadReport {
    /// Objects of kinds that planning uses.
    pub objects: usize,
    /// What the reader should know, such as an object that occurred twice; in a stable order.
    pub notes: Vec<String>,
}
