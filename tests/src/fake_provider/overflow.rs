//! How servers say that a request is too long.

use super::Behaviour;

/// A kind of server, by its words for a request that is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of the servers")]
pub enum OverflowError {
    OpenAi,
    Anthropic,
    LlamaCpp,
    Vllm,
    Ollama,
    OpenRouter,
    Gemini,
    Groq,
    DeepSeek,
    Mistral,
    LmStudio,
    /// 413 with a page of a gateway.
    PayloadTooLarge,
    /// Status 200, and the error in the body.
    InBody,
    /// Status 200, and the error as an event of the stream.
    InStream,
}

impl OverflowError {
    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::OpenAi,
        Self::Anthropic,
        Self::LlamaCpp,
        Self::Vllm,
        Self::Ollama,
        Self::OpenRouter,
        Self::Gemini,
        Self::Groq,
        Self::DeepSeek,
        Self::Mistral,
        Self::LmStudio,
        Self::PayloadTooLarge,
        Self::InBody,
        Self::InStream,
    ];

    /// Whether the words name the window and the size of the request.
    #[must_use]
    pub fn names_figures(self) -> bool {
        !matches!(self, Self::Ollama | Self::PayloadTooLarge | Self::LmStudio)
    }

    /// The answer, for a window and a request of so many tokens.
    #[must_use]
    pub fn behaviour(self, limit: u64, requested: u64) -> Behaviour {
        let error = |status, text: &str| {
            Behaviour::status(status, text).header("Content-Type", "application/json")
        };
        match self {
            Self::OpenAi => error(
                400,
                &format!(
                    r#"{{"error":{{"message":"This model's maximum context length is {limit} tokens. However, your messages resulted in {requested} tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}}}"#
                ),
            ),
            Self::Anthropic => error(
                400,
                &format!(
                    r#"{{"type":"error","error":{{"type":"invalid_request_error","message":"prompt is too long: {requested} tokens > {limit} maximum"}}}}"#
                ),
            ),
            Self::LlamaCpp => error(
                400,
                &format!(
                    r#"{{"error":{{"code":400,"message":"request ({requested} tokens) exceeds the available context size ({limit} tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":{requested},"n_ctx":{limit}}}}}"#
                ),
            ),
            Self::Vllm => error(
                400,
                &format!(
                    r#"{{"object":"error","message":"This model's maximum context length is {limit} tokens. However, you requested {requested} tokens ({requested} in the messages, 0 in the completion). Please reduce the length of the messages or completion.","type":"BadRequestError","param":null,"code":400}}"#
                ),
            ),
            Self::Ollama => error(
                400,
                r#"{"error":{"message":"prompt too long; exceeded max context length by 1200 tokens","type":"invalid_request_error","param":null,"code":null}}"#,
            ),
            Self::OpenRouter => error(
                400,
                &format!(
                    r#"{{"error":{{"message":"This endpoint's maximum context length is {limit} tokens. However, you requested about {requested} tokens ({requested} of text input). Please reduce the length of either one, or use the \"middle-out\" transform to compress your prompt automatically.","code":400}}}}"#
                ),
            ),
            Self::Gemini => error(
                400,
                &format!(
                    r#"[{{"error":{{"code":400,"message":"The input token count ({requested}) exceeds the maximum number of tokens allowed ({limit}).","status":"INVALID_ARGUMENT"}}}}]"#
                ),
            ),
            Self::Groq => error(
                413,
                &format!(
                    r#"{{"error":{{"message":"Request too large for model `llama` in organization `org` service tier `on_demand` on tokens per minute (TPM): Limit {limit}, Requested {requested}, please reduce your message size and try again.","type":"tokens","code":"rate_limit_exceeded"}}}}"#
                ),
            ),
            Self::DeepSeek => error(
                400,
                &format!(
                    r#"{{"error":{{"message":"This model's maximum context length is {limit} tokens. However, you requested {requested} tokens ({requested} in the messages, 0 in the completion). Please reduce the length of the messages or completion.","type":"invalid_request_error","code":"invalid_request_error"}}}}"#
                ),
            ),
            Self::Mistral => error(
                400,
                &format!(
                    r#"{{"object":"error","message":"Prompt contains {requested} tokens and 0 draft tokens, too large for model with {limit} maximum context length","type":"invalid_request_error","code":"3051"}}"#
                ),
            ),
            Self::LmStudio => error(
                400,
                &format!(
                    r#"{{"error":"Trying to keep the first 5432 tokens when context the overflows. However, the model is loaded with context length of only {limit} tokens, which is not enough."}}"#
                ),
            ),
            Self::PayloadTooLarge => Behaviour::status(
                413,
                "<html><head><title>413 Request Entity Too Large</title></head></html>",
            )
            .header("Content-Type", "text/html"),
            Self::InBody => Behaviour::body(&format!(
                r#"{{"error":{{"message":"prompt is too long: {requested} tokens > {limit} maximum","code":400}}}}"#
            )),
            Self::InStream => Behaviour::events(&[&format!(
                r#"{{"error":{{"message":"prompt is too long: {requested} tokens > {limit} maximum","code":400}}}}"#
            )]),
        }
    }
}
