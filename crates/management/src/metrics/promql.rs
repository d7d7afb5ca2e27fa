//! The metrics that a `PromQL` query names, with their labels. It knows as much of the language as
//! the dashboard and the rules need, and panics over what it does not know.

/// A metric in a query, and what the query wants its labels to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Selector {
    pub(super) metric: String,
    pub(super) matchers: Vec<Matcher>,
}

/// `label="value"`, or with another operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Matcher {
    pub(super) label: String,
    pub(super) operator: String,
    pub(super) value: String,
}

/// What a query names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) selectors: Vec<Selector>,
    /// Labels by which it groups or joins.
    pub(super) labels: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Text(String),
    /// An operator, a parenthesis, a range or a number.
    Sign(String),
}

/// Words that are followed by labels in parentheses.
const WITH_LABELS: [&str; 6] = [
    "by",
    "without",
    "on",
    "ignoring",
    "group_left",
    "group_right",
];
/// Words that are no metrics, also where no parenthesis follows.
const OPERATORS: [&str; 9] = [
    "and", "or", "unless", "bool", "offset", "sum", "max", "min", "topk",
];

const fn is_of_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_' || character == ':'
}

/// Length of the first token.
fn token_len(rest: &str, first: char) -> usize {
    let until = |end: fn(char) -> bool| rest.find(end).unwrap_or(rest.len());
    match first {
        '"' => rest[1..].find('"').expect("a closed text") + 2,
        '[' => rest.find(']').expect("a closed range") + 1,
        '=' | '!' | '<' | '>' if matches!(rest.as_bytes().get(1), Some(b'=' | b'~')) => 2,
        _ if first.is_ascii_digit() => {
            until(|character| !character.is_ascii_alphanumeric() && character != '.')
        }
        _ if is_of_word(first) => until(|character| !is_of_word(character)),
        _ => first.len_utf8(),
    }
}

fn tokens(query: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = query.trim_start();
    while let Some(first) = rest.chars().next() {
        let (token, left) = rest.split_at(token_len(rest, first));
        tokens.push(match first {
            '"' => Token::Text(token.trim_matches('"').to_owned()),
            _ if is_of_word(first) && !first.is_ascii_digit() => Token::Word(token.to_owned()),
            _ => Token::Sign(token.to_owned()),
        });
        rest = left.trim_start();
    }
    tokens
}

/// The metrics and labels that a query names.
pub(super) fn named(query: &str) -> Named {
    let mut named = Named::default();
    let mut tokens = tokens(query).into_iter().peekable();
    let sign = |wanted: &'static str| move |token: &Token| *token == Token::Sign(wanted.to_owned());
    while let Some(token) = tokens.next() {
        let Token::Word(word) = token else {
            continue;
        };
        let is_call = tokens.peek().is_some_and(sign("("));
        if WITH_LABELS.contains(&&*word) {
            assert!(is_call, "{query}: {word} without labels");
            let inside = tokens.by_ref().take_while(|token| !sign(")")(token));
            named.labels.extend(inside.filter_map(|token| match token {
                Token::Word(label) => Some(label),
                Token::Text(_) | Token::Sign(_) => None,
            }));
        } else if !is_call && !OPERATORS.contains(&&*word) {
            let has_matchers = tokens.next_if(sign("{")).is_some();
            let inside = tokens.by_ref().take_while(|token| !sign("}")(token));
            let inside: Vec<Token> = if has_matchers {
                inside.collect()
            } else {
                Vec::new()
            };
            named.selectors.push(Selector {
                metric: word,
                matchers: matchers(query, &inside),
            });
        }
    }
    named
}

fn matchers(query: &str, tokens: &[Token]) -> Vec<Matcher> {
    let each = tokens.split(|token| *token == Token::Sign(",".to_owned()));
    let each = each.filter(|tokens| !tokens.is_empty());
    let matcher = |tokens: &[Token]| match tokens {
        [
            Token::Word(label),
            Token::Sign(operator),
            Token::Text(value),
        ] => Matcher {
            label: label.clone(),
            operator: operator.clone(),
            value: value.clone(),
        },
        other => panic!("{query}: {other:?}"),
    };
    each.map(matcher).collect()
}

#[test]
fn metrics_and_labels_of_queries_are_found() {
    let found = |query: &str| {
        let Named { selectors, labels } = named(query);
        let selectors = selectors.into_iter().map(|one| {
            let matchers = one.matchers.into_iter();
            let matchers =
                matchers.map(|one| format!("{}{}{}", one.label, one.operator, one.value));
            (one.metric, matchers.collect::<Vec<_>>().join(" "))
        });
        (selectors.collect::<Vec<_>>(), labels.join(" "))
    };
    let one = |metric: &str, matchers: &str| (metric.to_owned(), matchers.to_owned());
    for (query, selectors, labels) in [
        ("a", vec![one("a", "")], ""),
        ("up{job=\"x\"} == 0", vec![one("up", "job=x")], ""),
        (
            "histogram_quantile(0.99, sum by (le, stage) (rate(a_bucket{b=~\"c|d\", e!=\"\"}[5m])))",
            vec![one("a_bucket", "b=~c|d e!=")],
            "le stage",
        ),
        (
            "sum(a) by (b) / on (c) group_left (d) (e offset 5m) > 1e3 and f unless g{}",
            vec![one("a", ""), one("e", ""), one("f", ""), one("g", "")],
            "b c d",
        ),
        (
            "topk(5, -rate(a[$__rate_interval])) or b",
            vec![one("a", ""), one("b", "")],
            "",
        ),
    ] {
        let expected = (selectors, labels.to_owned());
        assert_eq!(found(query), expected, "{query}");
    }
}
