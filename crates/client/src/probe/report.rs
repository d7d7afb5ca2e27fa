//! The findings as a table or as JSON.

use std::io::Write as _;

use serde_json::json;

use super::finding::Findings;
use super::version_name;
use crate::Stop;

/// Prints them.
pub(super) fn print(place: &str, findings: &Findings, as_json: bool) -> Result<(), Stop> {
    let text = if as_json {
        format!("{}\n", in_json(place, findings))
    } else {
        table(place, findings)
    };
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(())
}

fn in_json(place: &str, findings: &Findings) -> serde_json::Value {
    let list = findings.list.iter().map(|finding| {
        json!({
            "name": finding.name,
            "outcome": finding.outcome.word(),
            "detail": finding.detail,
        })
    });
    json!({
        "broker": place,
        "security": findings.security,
        "version": findings.version.map(version_name),
        "findings": list.collect::<Vec<_>>(),
    })
}

fn table(place: &str, findings: &Findings) -> String {
    let mut text = format!("{place}\n");
    if let Some(security) = &findings.security {
        text.extend([format!("secured by {security}\n")]);
    }
    if let Some(version) = findings.version {
        text.extend([format!("looked at with {}\n", version_name(version))]);
    }
    text.push('\n');
    for finding in &findings.list {
        // What a broker sends must not control the terminal.
        let detail: String = finding
            .detail
            .chars()
            .filter(|one| !one.is_control())
            .collect();
        let word = finding.outcome.word();
        text.extend([format!("{:<25} {word:<8} {detail}\n", finding.name)]);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::finding::{Finding, Outcome};
    use super::*;

    #[test]
    fn both_forms_have_every_finding() {
        let mut findings = Findings {
            version: Some(thrum_codec::Version::V5),
            security: Some("TLS 1.3".to_owned()),
            ..Findings::default()
        };
        findings.add(Finding::new(
            "will delay",
            Outcome::No,
            "no will came\u{1b}",
        ));
        assert_eq!(
            table("mqtt://b:1", &findings),
            "mqtt://b:1\nsecured by TLS 1.3\nlooked at with MQTT 5.0\n\n\
             will delay                no       no will came\n"
        );
        let json = in_json("mqtt://b:1", &findings);
        assert_eq!(json["findings"][0]["outcome"], "no");
        assert_eq!(json["version"], "MQTT 5.0");
    }
}
