//! How full the context is, in a line and in a table. Neither enters the engine.

use crate::agent::AgentStatus;

/// The line above the prompt.
pub(super) fn line(status: &AgentStatus) -> String {
    let tokens = thousands(status.tokens);
    let room = match status.state.threshold_tokens {
        0 => format!("~{tokens} tokens"),
        threshold => format!("~{tokens} / {} tokens", thousands(threshold)),
    };
    let passes = match status.compressions {
        1 => "1 compression".to_owned(),
        passes => format!("{passes} compressions"),
    };
    format!("{room} · {} · {passes}", status.engine)
}

/// What `/status` shows.
pub(super) fn table(status: &AgentStatus) -> String {
    let mut rows = vec![
        ("session", status.session_id.clone()),
        (
            "model",
            format!(
                "{}, a window of {} tokens",
                model(status),
                thousands(status.context_length)
            ),
        ),
        ("engine", status.engine.clone()),
    ];
    if let Some(why) = &status.manager.why {
        rows.push(("managed by", format!("{}: {why}", status.manager.engine)));
    }
    let threshold = status.state.threshold_tokens;
    rows.push((
        "context",
        match threshold {
            0 => format!("~{} tokens", thousands(status.tokens)),
            _ => format!(
                "~{} tokens; compression at {} ({} %)",
                thousands(status.tokens),
                thousands(threshold),
                status.tokens.saturating_mul(100) / threshold
            ),
        },
    ));
    rows.push(("messages", thousands(status.messages as u64)));
    rows.push(("turns", status.turns.to_string()));
    rows.push(("compressions", status.compressions.to_string()));
    let lines: Vec<String> = rows
        .iter()
        .map(|(name, value)| format!("{name:<13} {value}"))
        .collect();
    lines.join("\n")
}

/// The model that is asked.
pub(super) fn model(status: &AgentStatus) -> String {
    match &status.in_place_of {
        None => status.model.clone(),
        Some(own) => format!("{} in place of {own}", status.model),
    }
}

/// A number with its thousands apart.
pub(super) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::thousands;

    #[test]
    fn thousands_stand_apart() {
        let table = [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (1_234_567, "1,234,567"),
        ];
        for (number, text) in table {
            assert_eq!(thousands(number), text);
        }
    }
}
