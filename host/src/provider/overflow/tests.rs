//! What providers say, word for word.

use super::*;

/// Status, text, limit, requested.
type Said = (u16, &'static str, Option<u64>, Option<u64>);

const TOO_LONG: &[Said] = &[
    // OpenAI, and all who copy it (DeepSeek, Azure, LiteLLM).
    (
        400,
        r#"{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
        Some(8192),
        Some(9000),
    ),
    (
        400,
        r#"{"error":{"message":"This model's maximum context length is 65536 tokens. However, you requested 70001 tokens (66001 in the messages, 4000 in the completion). Please reduce the length of the messages or completion.","type":"invalid_request_error"}}"#,
        Some(65536),
        Some(70001),
    ),
    (
        400,
        r#"{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again.","code":"context_length_exceeded"}}"#,
        None,
        None,
    ),
    (
        400,
        r#"{"error":{"message":"litellm.ContextWindowExceededError: AnthropicException - prompt is too long"}}"#,
        None,
        None,
    ),
    // Anthropic.
    (
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210337 tokens > 200000 maximum"}}"#,
        Some(200_000),
        Some(210_337),
    ),
    (
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or `max_tokens` and try again"}}"#,
        Some(200_000),
        Some(210_000),
    ),
    (
        429,
        r#"{"type":"error","error":{"type":"rate_limit_error","message":"Extra usage is required for long context requests."}}"#,
        Some(200_000),
        None,
    ),
    // llama.cpp, new and old.
    (
        400,
        r#"{"error":{"code":400,"message":"request (9215 tokens) exceeds the available context size (8192 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9215,"n_ctx":8192}}"#,
        Some(8192),
        Some(9215),
    ),
    (
        400,
        r#"{"error":{"code":400,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"exceed_context_size_error","n_prompt_tokens":9215,"n_ctx":8192}}"#,
        Some(8192),
        Some(9215),
    ),
    (
        500,
        r#"{"error":{"code":500,"message":"context size has been exceeded.","type":"server_error"}}"#,
        None,
        None,
    ),
    // vLLM, three generations.
    (
        400,
        r#"{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4500 in the messages, 500 in the completion). Please reduce the length of the messages or completion.","type":"BadRequestError","code":400}"#,
        Some(4096),
        Some(5000),
    ),
    (
        400,
        r#"{"error":{"message":"This model's maximum context length is 4096 tokens. However, your request has 5000 input tokens. Please reduce the length of the input messages.","type":"BadRequestError","code":400}}"#,
        Some(4096),
        Some(5000),
    ),
    (
        400,
        r#"{"error":{"message":"'max_tokens' or 'max_completion_tokens' is too large: 500. This model's maximum context length is 4096 tokens and your request has 4000 input tokens (500 > 4096 - 4000).","code":400}}"#,
        Some(4096),
        Some(4500),
    ),
    (
        400,
        r#"{"error":{"message":"You passed 40961 input tokens and requested 0 output tokens. However, the model's context length is only 40960 tokens. Please reduce the length of the input prompt."}}"#,
        Some(40960),
        Some(40961),
    ),
    // Ollama.
    (
        400,
        r#"{"error":{"message":"prompt too long; exceeded max context length by 1200 tokens","type":"invalid_request_error"}}"#,
        None,
        None,
    ),
    (
        400,
        r#"{"error":"the input length exceeds the context length"}"#,
        None,
        None,
    ),
    // OpenRouter, its own and a nested one.
    (
        400,
        r#"{"error":{"message":"This endpoint's maximum context length is 131072 tokens. However, you requested about 140213 tokens (138165 of text input, 2048 in the output). Please reduce the length of either one, or use the \"middle-out\" transform to compress your prompt automatically.","code":400}}"#,
        Some(131_072),
        Some(140_213),
    ),
    (
        400,
        r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"prompt is too long: 210337 tokens > 200000 maximum\"}}","provider_name":"Anthropic"}}}"#,
        Some(200_000),
        Some(210_337),
    ),
    // Gemini.
    (
        400,
        r#"[{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]"#,
        Some(1_048_576),
        Some(1_200_000),
    ),
    // Groq.
    (
        413,
        r#"{"error":{"message":"Request too large for model `llama-3.1-8b-instant` in organization `org_x` service tier `on_demand` on tokens per minute (TPM): Limit 6000, Requested 9000, please reduce your message size and try again.","type":"tokens","code":"rate_limit_exceeded"}}"#,
        Some(6000),
        Some(9000),
    ),
    (
        400,
        r#"{"error":{"message":"Please reduce the length of the messages or completion.","type":"invalid_request_error","code":"context_length_exceeded"}}"#,
        None,
        None,
    ),
    // OpenAI: one request is more than a minute's worth.
    (
        429,
        r#"{"error":{"message":"Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30,000, Requested 41,210. The input or output tokens must be reduced in order to run successfully.","type":"tokens","code":"rate_limit_exceeded"}}"#,
        Some(30_000),
        Some(41_210),
    ),
    // Mistral.
    (
        400,
        r#"{"object":"error","message":"Prompt contains 33000 tokens and 0 draft tokens, too large for model with 32768 maximum context length","type":"invalid_request_error","code":"3051"}"#,
        Some(32768),
        Some(33000),
    ),
    // LM Studio.
    (
        400,
        r#"{"error":"Trying to keep the first 5432 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough. Try to load the model with a larger context length, or provide a shorter input"}"#,
        Some(4096),
        None,
    ),
    (
        400,
        r#"{"error":"Reached context length of 4096 tokens with this model (mid-generation)."}"#,
        Some(4096),
        None,
    ),
    // xAI, Moonshot, MiniMax, Qwen, GLM, Cerebras, TGI, SGLang, Cohere, Copilot, GitHub Models, Bedrock.
    (
        400,
        r#"{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains 140000 tokens."}"#,
        Some(131_072),
        Some(140_000),
    ),
    (
        400,
        r#"{"error":{"message":"Invalid request: Your request exceeded model token limit: 131072 (requested: 140000)","type":"invalid_request_error"}}"#,
        Some(131_072),
        Some(140_000),
    ),
    (
        400,
        r#"{"error":{"message":"invalid params, context window exceeds limit (2013)","type":"bad_request_error"}}"#,
        None,
        None,
    ),
    (
        400,
        r#"{"error":{"message":"<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]","code":"invalid_parameter_error"}}"#,
        Some(129_024),
        None,
    ),
    (
        400,
        r#"{"error":{"code":"1261","message":"Prompt exceeds max length"}}"#,
        None,
        None,
    ),
    (
        400,
        r#"{"message":"Please reduce the length of the messages or completion. Current length is 9014 while limit is 8192","code":"context_length_exceeded"}"#,
        Some(8192),
        Some(9014),
    ),
    (
        422,
        r#"{"error":"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 4300 `inputs` tokens and 200 `max_new_tokens`","error_type":"validation"}"#,
        Some(4097),
        Some(4300),
    ),
    (
        400,
        r#"{"object":"error","message":"The input (9000 tokens) is longer than the model's context length (8192 tokens).","code":400}"#,
        Some(8192),
        Some(9000),
    ),
    (
        400,
        r#"{"object":"error","message":"Requested token count exceeds the model's maximum context length of 8192 tokens. You requested a total of 9500 tokens: 9000 tokens from the input messages and 500 tokens for the completion.","code":400}"#,
        Some(8192),
        Some(9500),
    ),
    (
        400,
        r#"{"message":"too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000."}"#,
        Some(4081),
        Some(5000),
    ),
    (
        400,
        r#"{"error":{"message":"prompt token count of 140000 exceeds the limit of 128000","code":"model_max_prompt_tokens_exceeded"}}"#,
        Some(128_000),
        Some(140_000),
    ),
    (
        413,
        r#"{"error":{"code":"tokens_limit_reached","message":"Request body too large for gpt-4o model. Max size: 8000 tokens."}}"#,
        Some(8000),
        None,
    ),
    (
        400,
        r#"{"message":"Input is too long for requested model."}"#,
        None,
        None,
    ),
];

#[test]
fn requests_that_are_too_long() {
    for (status, text, limit, requested) in TOO_LONG {
        let want = Meaning::TooLong(Overflow {
            limit: *limit,
            requested: *requested,
            payload: false,
        });
        assert_eq!(meaning(Some(*status), text), want, "{text}");
        // The same words in a stream, or with status 200: there is no 413 or 429 to go by.
        assert!(
            matches!(meaning(None, text), Meaning::TooLong(_)),
            "without status: {text}"
        );
    }
}

#[test]
fn requests_with_too_many_bytes() {
    for (status, text) in [
        (
            413,
            "<html><head><title>413 Request Entity Too Large</title></head></html>",
        ),
        (413, ""),
        (
            413,
            r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
        ),
        (
            400,
            r#"{"error":{"message":"Invalid 'messages[1].content': string too long. Expected a string with maximum length 10485760, but got a string with length 11000000 instead.","code":"string_above_max_length"}}"#,
        ),
    ] {
        let want = Meaning::TooLong(Overflow {
            payload: true,
            ..Overflow::default()
        });
        assert_eq!(meaning(Some(status), text), want, "{text}");
    }
}

#[test]
fn rates_answer_limits_and_all_else_are_no_overflow() {
    for (status, text, want) in [
        (
            429,
            r#"{"error":{"message":"Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Used 29000, Requested 5000. Please try again in 8s.","type":"tokens","code":"rate_limit_exceeded"}}"#,
            Meaning::Other,
        ),
        (
            429,
            r#"{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit of 40,000 input tokens per minute. Please reduce the prompt length or try again later."}}"#,
            Meaning::Other,
        ),
        (
            429,
            r#"{"error":{"code":429,"message":"You exceeded your current quota. Quota exceeded for metric: generate_content_free_tier_input_token_count, limit: 250000. Please retry in 34s."}}"#,
            Meaning::Other,
        ),
        (
            429,
            "Too many tokens, please wait before trying again.",
            Meaning::Other,
        ),
        (
            400,
            r#"{"error":{"message":"max_tokens is too large: 100000. This model supports at most 16384 completion tokens, whereas you provided 100000.","param":"max_tokens"}}"#,
            Meaning::AnswerLimit,
        ),
        (
            400,
            r#"{"error":{"message":"`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than the `context_window` for this model"}}"#,
            Meaning::AnswerLimit,
        ),
        (
            400,
            r#"{"error":{"message":"'max_tokens' or 'max_completion_tokens' is too large: 5000. This model's maximum context length is 4096 tokens and your request has 100 input tokens (5000 > 4096 - 100)."}}"#,
            Meaning::AnswerLimit,
        ),
        (
            400,
            r#"{"error":{"message":"This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (1000 in the messages, 8000 in the completion). Please reduce the length of the messages or completion.","code":"context_length_exceeded"}}"#,
            Meaning::AnswerLimit,
        ),
        (
            400,
            r#"{"error":{"message":"max_tokens: 300000 > 64000, which is the maximum allowed number of output tokens for this model"}}"#,
            Meaning::AnswerLimit,
        ),
        (
            400,
            r#"{"error":{"message":"messages.1.content.0.image: image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes"}}"#,
            Meaning::Other,
        ),
        (
            400,
            r#"{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","code":"unsupported_parameter"}}"#,
            Meaning::Other,
        ),
        (
            404,
            r#"{"error":{"message":"The model `gpt-9` does not exist"}}"#,
            Meaning::Other,
        ),
        (500, "Internal Server Error", Meaning::Other),
        (200, "", Meaning::Other),
    ] {
        assert_eq!(meaning(Some(status), text), want, "{text}");
    }
}

#[test]
fn every_pattern_compiles() {
    let p = patterns();
    assert_eq!(
        [
            p.limit.len(),
            p.requested.len(),
            p.answer.len(),
            p.prompt_only.len()
        ],
        [19, 15, 3, 2]
    );
}
