//! A backend with a fixed answer, for tests.

use thrum_access::{Identity, Login, Question, Rules};

use crate::backend::{Asked, Backend, BackendError, Found, Verdict};

/// Always gives the same answer.
#[derive(Debug)]
pub(crate) struct Fake {
    name: &'static str,
    says: Says,
}

/// Its answer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Says {
    Allow,
    Deny,
    Ignore,
    Unreachable,
    Overloaded,
    /// Nothing, ever.
    Nothing,
    /// Nothing: its library panics.
    Panic,
}

impl Fake {
    pub(crate) const fn new(name: &'static str, says: Says) -> Self {
        Self { name, says }
    }

    async fn error<T>(&self) -> Result<T, BackendError> {
        match self.says {
            Says::Overloaded => Err(BackendError::Overloaded),
            Says::Nothing => std::future::pending().await,
            Says::Panic => panic!("a library that read nonsense"),
            Says::Allow | Says::Deny | Says::Ignore | Says::Unreachable => {
                Err(BackendError::Unreachable("connection refused".to_owned()))
            }
        }
    }
}

impl Backend for Fake {
    fn name(&self) -> &str {
        self.name
    }

    fn login<'a>(&'a self, _login: &'a Login) -> Asked<'a, Verdict> {
        Box::pin(async {
            match self.says {
                Says::Allow => Ok(Verdict::Allow(Box::new(Found {
                    roles: vec!["ops".into()],
                    ..Found::default()
                }))),
                Says::Deny => Ok(Verdict::Deny("wrong password".into())),
                Says::Ignore => Ok(Verdict::Ignore),
                Says::Unreachable | Says::Overloaded | Says::Nothing | Says::Panic => {
                    self.error().await
                }
            }
        })
    }

    fn refresh<'a>(&'a self, _identity: &'a Identity) -> Asked<'a, Option<Rules>> {
        Box::pin(async {
            match self.says {
                Says::Allow => Ok(Some(Rules::default())),
                Says::Deny | Says::Ignore => Ok(None),
                Says::Unreachable | Says::Overloaded | Says::Nothing | Says::Panic => {
                    self.error().await
                }
            }
        })
    }

    fn is_authorizer(&self) -> bool {
        true
    }

    fn authorize<'a>(&'a self, _question: &'a Question) -> Asked<'a, Option<bool>> {
        Box::pin(async {
            match self.says {
                Says::Allow => Ok(Some(true)),
                Says::Deny => Ok(Some(false)),
                Says::Ignore => Ok(None),
                Says::Unreachable | Says::Overloaded | Says::Nothing | Says::Panic => {
                    self.error().await
                }
            }
        })
    }
}
