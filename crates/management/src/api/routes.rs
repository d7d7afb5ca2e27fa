//! Routes below [`PREFIX`](super::PREFIX): handlers with their documentation, and the right that
//! each of them needs. A handler without documentation does not compile here.

use axum::middleware;
use axum::routing::MethodRouter;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};

use super::entrance::{self, Permission, Right};
use super::request::BodyLimit;
use super::{ApiState, openapi};
use crate::login::Scope;

/// Bytes of a body that anybody may send without a right: a name, a password, a code.
const OPEN_BODY_BYTES_MAX: usize = 16 * 1024;

/// Handlers of one path, as [`routes!`](utoipa_axum::routes) makes them of `#[utoipa::path]`.
pub(super) type Handlers = UtoipaMethodRouter<ApiState>;

/// The routes of a broker.
pub(super) struct Routes {
    api: ApiState,
    router: OpenApiRouter<ApiState>,
}

impl Routes {
    pub(super) fn new(api: ApiState) -> Self {
        let router = OpenApiRouter::with_openapi(openapi::without_routes());
        Self { api, router }
    }

    /// Adds handlers that need a scope.
    pub(super) fn scoped(self, scope: Scope, handlers: Handlers) -> Self {
        self.add(Right::Scope(scope), handlers)
    }

    /// Adds handlers for every caller that is known.
    pub(super) fn logged_in(self, handlers: Handlers) -> Self {
        self.add(Right::Login, handlers)
    }

    /// Adds handlers about the session of the caller.
    pub(super) fn own(self, handlers: Handlers) -> Self {
        self.add(Right::Session, handlers)
    }

    /// Adds handlers that anybody may use, because nobody can log in without them.
    pub(super) fn open(self, handlers: Handlers) -> Self {
        let (schemas, paths, methods) = handlers;
        let methods = methods.layer(BodyLimit(OPEN_BODY_BYTES_MAX).layer());
        let handlers = (schemas, paths, methods);
        self.add(Right::Nothing, handlers)
    }

    /// The router and its document.
    pub(super) fn finish(self) -> OpenApiRouter<ApiState> {
        self.router
    }

    fn add(mut self, right: Right, handlers: Handlers) -> Self {
        let (mut schemas, mut paths, methods) = handlers;
        for (name, schema) in &mut schemas {
            openapi::complete_schema(schema);
            let known = self.router.get_openapi().components.as_ref();
            let known = known.and_then(|components| components.schemas.get(name));
            assert!(
                known.is_none_or(|known| known == schema),
                "two types of the interface have the name {name}"
            );
        }
        openapi::complete(&mut paths, right);
        let methods = guarded(&self.api, right, methods);
        self.router = self.router.routes((schemas, paths, methods));
        self
    }
}

/// Handlers that answer only who has a right.
pub(super) fn guarded(
    api: &ApiState,
    right: Right,
    methods: MethodRouter<ApiState>,
) -> MethodRouter<ApiState> {
    let permission = Permission {
        api: api.clone(),
        right,
    };
    methods.route_layer(middleware::from_fn_with_state(permission, entrance::permit))
}
