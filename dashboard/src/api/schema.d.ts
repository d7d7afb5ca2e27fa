// Written by "npm run generate" from docs/api/openapi.json. Do not edit.

export interface paths {
    "/access/login-test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Tries a login, and tells what each backend answers.
         * @description Nobody connects. It tells whether a password is right, so wrong ones are slowed, and every
         *     attempt is in the audit log, without the password.
         */
        post: operations["test_login"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/access/rules": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists the rules in force in the order in which they are asked.
         * @description Without a client those for all clients.
         */
        get: operations["list_rules"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/access/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Tests what a client may do, and names the rules that decide. */
        post: operations["test_access"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admins": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists administrators. */
        get: operations["list_administrators"];
        put?: never;
        /** Adds an administrator. */
        post: operations["add_administrator"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admins/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Removes an administrator; its sessions end. */
        delete: operations["remove_administrator"];
        options?: never;
        head?: never;
        /** Changes the role of an administrator, disables it, or removes its one-time codes. */
        patch: operations["change_administrator"];
        trace?: never;
    };
    "/admins/{name}/password": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Sets another password of an administrator; its sessions end. */
        post: operations["reset_password"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/alarms": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the alarms that are raised, the most severe first. */
        get: operations["list_alarms"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/alarms/history": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists alarms that were cleared since the start of the broker, the newest first. */
        get: operations["list_past_alarms"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists changes, logins and refusals, the newest first. */
        get: operations["list_audit"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/backups": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the complete backups. */
        get: operations["list_backups"];
        put?: never;
        /**
         * Begins a backup of all that the broker has stored.
         * @description It is made beside the work of the broker. `GET /backups/NAME` says how far it is; there is one
         *     at a time. The audit log has the request when it has begun, and its outcome at its end.
         */
        post: operations["make_backup"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/backups/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Shows a backup, also while it is made, and the last one that failed. */
        get: operations["show_backup"];
        put?: never;
        post?: never;
        /** Removes a backup; one that is made is ended, and one that failed is forgotten. */
        delete: operations["remove_backup"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/backups/{name}/file": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Reads a complete backup: a tar archive.
         * @description It has payloads in clear text, hashes of passwords and all rights: keep it as such. The next
         *     bytes are read when the client has taken the last ones.
         */
        get: operations["fetch_backup"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/bans": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the bans in force. */
        get: operations["list_bans"];
        put?: never;
        /**
         * Bans a client, a user or an address.
         * @description A ban of the same takes the place of the one before. It is in force at once, and connected
         *     clients that it names are disconnected, unless `disconnect` is false.
         */
        post: operations["add_ban"];
        /** Lifts a ban. */
        delete: operations["lift_ban"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/clients": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists clients, filtered and sorted. */
        get: operations["list_clients"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/clients/facets": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Counts clients by listener, version, state, problem and user. */
        get: operations["count_clients"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/clients/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Shows a client in full. */
        get: operations["show_client"];
        put?: never;
        post?: never;
        /** Disconnects a client, and ends its session if it is asked to. */
        delete: operations["kick_client"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/clients/{id}/ban": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Bans a client by its identifier, its user or its address. */
        post: operations["ban_client"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/clients/{id}/queue": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists the messages that the broker holds for a client: those in flight, then its queue.
         * @description Payloads need the scope `messages:read` as well.
         */
        get: operations["list_client_queue"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/clients/{id}/session": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Ends the session of a client, which is disconnected. */
        delete: operations["end_client_session"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/clients/{id}/subscriptions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the subscriptions of a client, by filter. */
        get: operations["list_client_subscriptions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/clients/{id}/timeline": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Shows the last events of a client with their causes, also of a client that has gone. */
        get: operations["show_client_timeline"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/config": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the keys of the configuration with their values and origins. */
        get: operations["list_configuration"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/config/apply": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Makes a planned change, all of it or nothing, and keeps it for later starts.
         * @description The same keys as for a plan need the scope `admin`.
         */
        post: operations["apply_configuration"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/config/plan": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Plans a change: checks it, and shows what would differ, without doing it.
         * @description A change of `management`, `auth`, `acl`, `sinks`, `telemetry`, `tls`, `node` or
         *     `protection.bans`, and of `tls`, `tls_from`, `auth`, `anonymous`, `mount_point`,
         *     `proxy_protocol` or `proxy_from` of a listener, needs the scope `admin`. So does a new listener:
         *     what it leaves out decides who may connect there, and to which topics.
         */
        post: operations["plan_configuration"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/config/reload": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Reads configuration files and variables again, as SIGHUP does. */
        post: operations["reload_configuration"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/config/rollback": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Returns to an earlier version of the keys that were set here, as a new version.
         * @description If keys differ that need the scope `admin` in a plan, they need it here, too.
         */
        post: operations["roll_back_configuration"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/config/schema": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Shows the schema of a configuration file. */
        get: operations["show_configuration_schema"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/config/versions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the versions of the keys that were set here, the newest first. */
        get: operations["list_configuration_versions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/config/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Shows a key of the configuration. */
        get: operations["show_configuration_key"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/drops": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists dropped messages by reason, client and topic, the most frequent first. */
        get: operations["list_drops"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/explain/drops": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Explains which messages a client did not get, and what would happen to the next one. */
        post: operations["explain_drops"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/explain/publish": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Explains what would happen to a PUBLISH of a client, step by step. Nothing is done. */
        post: operations["explain_publish"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/explain/subscribe": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Explains what would happen to a SUBSCRIBE of a client, step by step. Nothing is done. */
        post: operations["explain_subscribe"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/groups": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists shared groups with the lag of each member. */
        get: operations["list_groups"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/history": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Shows figures of each second of the last 15 minutes.
         * @description They are kept while the HTTP port is open; without one the answer is 404.
         */
        get: operations["show_history"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/import/users": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Imports users of other programs with the hashes of their passwords.
         * @description The body is the file, up to 16 MiB.
         */
        post: operations["import_users"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists API keys, without their secrets. */
        get: operations["list_keys"];
        put?: never;
        /** Adds an API key, and shows it once. */
        post: operations["add_key"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/keys/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Removes an API key, which is refused from then on. */
        delete: operations["remove_key"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/listeners": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the listeners of the configuration with their state, limits and certificates. */
        get: operations["list_listeners"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/listeners/reload-certificates": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Reads the files of TLS again, for later connections. */
        post: operations["reload_certificates"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/listeners/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Shows a listener. */
        get: operations["show_listener"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/listeners/{name}/start": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Starts a listener that was stopped. */
        post: operations["start_listener"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/listeners/{name}/stop": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Stops a listener until it is started, or the broker is: it accepts no connections. */
        post: operations["stop_listener"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/login": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Shows who the caller is, and what it may do. */
        get: operations["show_caller"];
        put?: never;
        /** Logs in with name and password; the answer sets the cookie of the session. */
        post: operations["log_in"];
        /** Logs out. */
        delete: operations["log_out"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/login/oidc": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Sends a browser to the OpenID Connect provider. */
        get: operations["begin_oidc"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/login/oidc/callback": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Logs in a browser that comes back from the OpenID Connect provider. */
        get: operations["finish_oidc"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/login/password": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Changes the password of the caller; its other sessions end. */
        post: operations["change_password"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/login/sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the sessions of the caller. */
        get: operations["list_own_sessions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/login/sessions/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Ends a session of the caller. */
        delete: operations["end_own_session"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/login/setup": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Makes the first administrator with the token of the setup link, and logs it in. */
        post: operations["set_up"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/login/totp": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Makes a secret for one-time codes, which are in force when the first code is confirmed. */
        post: operations["begin_totp"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/login/totp/confirm": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Confirms the first one-time code; from then on each login needs one. */
        post: operations["confirm_totp"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/login/totp/remove": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Removes the one-time codes of the caller. */
        post: operations["remove_totp"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/logs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the last events of the log, or sends them as they come (`Accept: text/event-stream`). */
        get: operations["list_logs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/logs/level": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Shows the level of the log, and levels that hold for a time. */
        get: operations["show_log_level"];
        /** Sets the level of the log for a time, for all of the broker or a part of it. */
        put: operations["set_log_level"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Shows every counter of the broker since its start. */
        get: operations["show_metrics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/node": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Shows the node: its process, its machine, its workers and its limits. */
        get: operations["show_node"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/openapi.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Shows this document. */
        get: operations["show_openapi"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/publish": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Publishes a message. */
        post: operations["publish_message"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/publish/batch": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Publishes several messages in their order; none of them if one is invalid. */
        post: operations["publish_batch"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/retained": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists retained messages without their payloads, in the order of the store. */
        get: operations["list_retained"];
        put?: never;
        post?: never;
        /** Removes the retained messages that match a filter, without a message to subscribers. */
        delete: operations["remove_retained"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/retained/export": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Writes the retained messages that match a filter, a line of JSON each.
         * @description The next ones are read when the client has taken the last ones. An answer that ends without its
         *     last chunk is not complete.
         */
        get: operations["export_retained"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/retained/import": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Stores the retained messages of the body, a line of JSON each, without a message to subscribers.
         * @description Messages in front of a line that is refused may be stored.
         */
        post: operations["import_retained"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/retained/message": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Shows the retained message of a topic with its payload and its properties. */
        get: operations["show_retained"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/roles": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists roles of users in the order of their names. */
        get: operations["list_roles"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/roles/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** Sets a role, in place of one of the same name. */
        put: operations["set_role"];
        post?: never;
        /** Removes a role; users keep its name, without its rules. */
        delete: operations["remove_role"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the sessions of all administrators. */
        get: operations["list_sessions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/sessions/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Ends a session of any administrator. */
        delete: operations["end_session"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/setup-link": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Makes a link that makes the first administrator, once. */
        post: operations["renew_setup_link"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/slow": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists clients that do not take their messages as fast as they come, the worst first. */
        get: operations["list_slow_clients"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/status": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Summarizes the state of the broker. */
        get: operations["show_status"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/storage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Shows the state of the durable storage. */
        get: operations["show_storage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/stream": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Sends what the query declares, as it changes, as server-sent events.
         * @description Each part needs its scope: `figures` needs `metrics:read`, the others `clients:read`; payloads
         *     are sent to callers with `messages:read`, and are a line of the audit log. The events are
         *     described in docs/guide/live.md.
         */
        get: operations["show_stream"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/subscriptions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists subscriptions, by client identifier and then by filter. */
        get: operations["list_subscriptions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/topic-metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the filters whose messages are counted, with their figures. */
        get: operations["list_topic_metrics"];
        put?: never;
        /** Counts the messages that match a filter, from now on and after restarts. */
        post: operations["add_topic_metric"];
        /** Counts the messages of a filter no longer. */
        delete: operations["remove_topic_metric"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/topics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists the topics below a level with their figures, which are counted from the first request on.
         * @description Counting ends a minute after the last request or stream. In the order of names a whole listing
         *     is complete; in another one each worker tells its first 2,048 rows. Payloads need the scope
         *     `messages:read` as well.
         */
        get: operations["list_topics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/topics/topic": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Shows a topic with its last values, publishers and subscribers.
         * @description Values and publishers are kept from the first request on. Payloads need the scope
         *     `messages:read` as well.
         */
        get: operations["show_topic"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/trace": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Traces packets of a client, of an address or about a topic for some seconds.
         * @description The answer follows when the trace has ended; with `Accept: text/event-stream` it begins at once,
         *     and may take an hour and 1,000,000 packets. Payloads need the scope `messages:read` as well, and
         *     are a line of the audit log.
         */
        get: operations["trace_packets"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/user-groups": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists groups of users in the order of their names. */
        get: operations["list_user_groups"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/user-groups/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** Sets a group, in place of one of the same name. */
        put: operations["set_user_group"];
        post?: never;
        /** Removes a group; users keep its name, without its rules. */
        delete: operations["remove_user_group"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/users": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists users in the order of their names. */
        get: operations["list_users"];
        put?: never;
        /** Adds a user, who can log in at once. */
        post: operations["add_user"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/users/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Shows a user. */
        get: operations["show_user"];
        put?: never;
        post?: never;
        /** Removes a user, whose clients are disconnected. */
        delete: operations["remove_user"];
        options?: never;
        head?: never;
        /**
         * Changes a user.
         * @description Rights are in force at once, also for connected clients; those of a disabled user are
         *     disconnected.
         */
        patch: operations["change_user"];
        trace?: never;
    };
    "/users/{name}/password": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Gives a user another password. */
        post: operations["set_user_password"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/why": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Measures some seconds, and ranks what makes messages slow and what drops them.
         * @description The answer follows at the end of the measurement, which ends early if the request does. Two
         *     measurements run at a time.
         */
        post: operations["ask_why"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description The decision. */
        AccessTest: {
            /** @description It is allowed, or of a subscription a part. */
            allowed: boolean;
            /** @description A backend is asked as well where no rule before it decides, and was not asked now. */
            asks_others: boolean;
            /** @description Groups of the client. */
            groups: string[];
            /** @description Why, if no rule decided; null otherwise. */
            otherwise: string | null;
            /**
             * @description Whose rights these are: `session`, `store`, or `name` for a user that the store does not
             *     have.
             */
            rights_of: string;
            /** @description Roles of the client. */
            roles: string[];
            /** @description The rules that decided, in their order. */
            rules: components["schemas"]["DecidingRule"][];
            /** @description `allowed`, `denied` or `allowed in part`. */
            verdict: string;
        };
        /** @description An action of a client to test. */
        AccessToTest: {
            /** @description `publish` or `subscribe`. */
            action: string;
            /** @description Address of the client. */
            address?: string | null;
            /**
             * @description Client identifier. The rights of a client that has a session are those of its session,
             *     unless `user` is named.
             */
            client_id: string;
            /** @description Its listener; `mqtt` if absent. */
            listener?: string | null;
            /**
             * Format: uint8
             * @description Quality of service; 0 if absent.
             */
            qos?: number;
            /** @description The message is to be retained. */
            retain?: boolean;
            /** @description Topic name, or to subscribe a topic filter. */
            topic: string;
            /** @description User, whose rights are in the store. */
            user?: string | null;
        };
        /** @description An administrator. */
        Administrator: {
            /**
             * Format: date-time
             * @description Time of its creation.
             */
            created_at: string;
            /** @description May not log in. */
            disabled: boolean;
            /** @description Name. */
            name: string;
            /** @description Recovery codes that are left. */
            recovery_codes_left: number;
            /** @description `viewer`, `operator` or `administrator`. */
            role: string;
            /** @description Its sessions. */
            sessions: number;
            /** @description Logs in with a one-time code. */
            totp: boolean;
        };
        /** @description Administrators by name. */
        AdministratorList: {
            /** @description At most 1,000, because there are no more. */
            administrators: components["schemas"]["Administrator"][];
        };
        /** @description The password, again. */
        AgainBody: {
            /**
             * Format: password
             * @description Password of the caller.
             */
            password: string;
        };
        /** @description An alarm. */
        Alarm: {
            /** @description What to do. */
            fix: string;
            /** @description Its name, which stays the same in later versions, such as `disk_nearly_full`. */
            name: string;
            /** @description The listener, sink or file that it is about; null for the node. */
            of: string | null;
            /**
             * Format: date-time
             * @description Since when.
             */
            raised_at: string;
            /** @description `critical` or `warning`. */
            severity: string;
            /** @description What is the case, and why. */
            what: string;
        };
        /** @description Alarms that were cleared, since the start of the broker. */
        AlarmHistory: {
            /** @description The newest first. */
            alarms: components["schemas"]["PastAlarm"][];
            /** @description The `cursor` of the next page; null on the last one. */
            next: string | null;
        };
        /** @description Alarms that are raised. */
        AlarmList: {
            /** @description The most severe first; at most 256, because no more are raised. */
            alarms: components["schemas"]["Alarm"][];
        };
        /** @description An API key, without its secret. */
        ApiKey: {
            /**
             * Format: date-time
             * @description Time of its creation.
             */
            created_at: string;
            /** @description Who made it. */
            created_by: string;
            /** @description It has expired. */
            expired: boolean;
            /**
             * Format: date-time
             * @description Time from which on it is refused; null if it does not expire.
             */
            expires_at: string | null;
            /** @description Its identifier, the second part of the key. */
            id: string;
            /** @description A text for people. */
            label: string;
            /** @description What it may do; `admin` includes everything. */
            scopes: string[];
            /**
             * Format: date-time
             * @description Its last use: exact since the start of the broker, before that to an hour; null if it has
             *     not been used.
             */
            used_at: string | null;
        };
        /** @description A change that was made. */
        Applied: {
            /** @description What differs. */
            differences: components["schemas"]["Difference"][];
            /** @description Keys that wait for a restart. */
            restart: string[];
            /**
             * Format: uint64
             * @description Number of the new version.
             */
            version: number;
        };
        /** @description Changes to put in force. */
        ApplyRequest: {
            /** @description As planned. */
            changes: {
                [key: string]: unknown;
            };
            /** @description That of the plan. */
            fingerprint: string;
        };
        /** @description A line of the audit log. */
        AuditEntry: {
            /** @description What was done, such as `client.kick`. */
            action: string;
            /** @description Address of the caller; null over the control socket. */
            address: string | null;
            /** @description The state after, without secrets; null if there is none. */
            after: unknown;
            /**
             * Format: date-time
             * @description Time.
             */
            at: string;
            /** @description The state before, without secrets; null if there was none. */
            before: unknown;
            /** @description Why it failed or was refused; null otherwise. */
            detail: string | null;
            /** @description `session`, `key`, `local` or `anonymous`. */
            means: string;
            /**
             * Format: uint64
             * @description Its number; later ones are higher.
             */
            number: number;
            /**
             * @description `done`, `failed`, `refused`; `unknown` if it is under way, or the request or the broker
             *     ended within it.
             */
            outcome: string;
            /** @description To what. */
            target: string;
            /** @description Name of the administrator, `key:ID`, `local` or `anonymous`. */
            who: string;
        };
        /** @description A page of the audit log, the newest entry first. */
        AuditPage: {
            /**
             * Format: uint64
             * @description Lines in the files of this page that cannot be read: torn by a crash, or changed.
             */
            damaged_lines: number;
            /** @description The entries; fewer than `limit`, or none, if the parameters match few of many. */
            entries: components["schemas"]["AuditEntry"][];
            /** @description The `cursor` of the next page; null on the last one. */
            next: string | null;
        };
        /** @description A copy of all that the broker has stored. */
        Backup: {
            /**
             * Format: date-time
             * @description Everything that was acknowledged before is in it.
             */
            began_at: string;
            /**
             * Format: uint64
             * @description Bytes that are written.
             */
            bytes: number;
            /**
             * Format: uint64
             * @description While it is made, or if that failed: bytes that it has at most.
             */
            expected_bytes: number | null;
            /** @description Why it failed. */
            failure: string | null;
            /** @description Its name, which is the time of its beginning. */
            name: string;
            /** @description `running`, `done` or `failed`. */
            state: string;
        };
        /** @description Some of the backups. */
        BackupPage: {
            /** @description The complete ones, the newest first. */
            backups: components["schemas"]["Backup"][];
            /** @description Cursor of the next page. */
            next: string | null;
            running: components["schemas"]["Backup"] | null;
        };
        /** @description A ban. */
        Ban: {
            /** @description Address or network: 192.0.2.7, 192.0.2.0/24. */
            address: string | null;
            /** @description Who added it: an administrator, `key:ID`, `local`, a user of the machine, or `flapping`. */
            by: string;
            /**
             * @description Client identifier; with `user` or `address` only the client of that user, or the one without
             *     user name from there.
             */
            client_id: string | null;
            /**
             * @description Connected clients that it names were disconnected; false: it keeps out only those that
             *     connect later.
             */
            disconnect: boolean;
            /** @description Why; the client does not see it. */
            reason: string;
            /** @description When it was added. */
            since: string;
            /** @description The broker made it for a time; it ends with the broker. */
            temporary: boolean;
            /** @description When it ends; null if it never does. */
            until: string | null;
            /** @description User: every client of it, unless `client_id` names one. */
            user: string | null;
        };
        /** @description A ban that was added. */
        BanAdded: {
            /** @description The ban in force. */
            ban: components["schemas"]["Ban"];
            replaced: components["schemas"]["Ban"] | null;
        };
        /** @description A page of bans. */
        BanPage: {
            /** @description The bans in force. */
            bans: components["schemas"]["Ban"][];
            /** @description How many match, on all pages together. */
            matching: number;
            /** @description The `cursor` of the next page; null on the last one. */
            next: string | null;
        };
        /**
         * @description A ban to add: of a client identifier, a user or an address, or of one client of a user or from
         *     an address.
         */
        BanToAdd: {
            /**
             * @description Address or network.
             * @default null
             */
            address?: string | null;
            /**
             * @description Client identifier.
             * @default null
             */
            client_id?: string | null;
            /**
             * @description False keeps connected clients, and keeps out those that connect later; they are disconnected
             *     if it is absent.
             * @default null
             */
            disconnect?: boolean | null;
            /**
             * @description Why; the client does not see it.
             * @default
             */
            reason?: string;
            /**
             * Format: uint64
             * @description Seconds until it ends; it never ends without `secs` and `until`.
             * @default null
             */
            secs?: number | null;
            /**
             * @description When it ends, such as `2030-01-01T00:00:00Z`.
             * @default null
             */
            until?: string | null;
            /**
             * @description User.
             * @default null
             */
            user?: string | null;
        };
        /** @description Messages to publish in their order, at most 1,000. */
        Batch: {
            /** @description The messages. */
            messages: components["schemas"]["Message"][];
        };
        /** @description The outcome of one message of a batch. */
        BatchItem: {
            outcome: components["schemas"]["Outcome"] | null;
            /** @description Why it was refused; null if it was not. */
            refused: string | null;
            /** @description It is the retained message of its topic, or has removed it. */
            retained: boolean;
        };
        /** @description Why a connection ended. */
        Cause: {
            /** @enum {string} */
            kind: "by_client";
            /** @description It asked for its will to be published. */
            with_will: boolean;
        } | {
            /** @enum {string} */
            kind: "lost";
        } | {
            /**
             * Format: uint16
             * @description Keep alive in seconds.
             */
            keep_alive_secs: number;
            /** @enum {string} */
            kind: "keep_alive";
            /**
             * Format: uint64
             * @description Milliseconds that it exceeded one and a half times the keep alive.
             */
            late_millis: number;
            /**
             * Format: uint64
             * @description Milliseconds since the last packet.
             */
            silent_millis: number;
        } | {
            /** @description Address and port of the other connection, or its kind if it has none. */
            by: string;
            /** @enum {string} */
            kind: "taken_over";
        } | {
            /** @enum {string} */
            kind: "by_broker";
            /** @description Reason in words. */
            reason: string;
            /**
             * Format: uint8
             * @description Reason code of 5.0.
             */
            reason_code: number;
        };
        /** @description A certificate of a listener. */
        Certificate: {
            /**
             * Format: int64
             * @description Whole days until then; negative if it has expired.
             */
            days_left: number;
            /** @description Its file. */
            file: string;
            /** @description Issuer. */
            issuer: string;
            /** @description Host names, wildcards among them. */
            names: string[];
            /**
             * Format: date-time
             * @description It is valid until then.
             */
            not_after: string;
            /**
             * Format: date-time
             * @description It is valid from then on.
             */
            not_before: string;
            /** @description Serial number in hexadecimal. */
            serial: string;
            /** @description Subject. */
            subject: string;
        };
        /** @description Certificates that were read again. */
        CertificateRenewal: {
            /** @description What cannot be used, a line each; the listeners concerned keep what they have. */
            failures: string[];
            /** @description The listeners with TLS, as they are now. */
            listeners: components["schemas"]["ListenerDetail"][];
        };
        /** @description What changes of an administrator; null keeps it. */
        ChangeBody: {
            /**
             * @description May not log in.
             * @default null
             */
            disabled?: boolean | null;
            /**
             * @description It logs in without a one-time code from now on.
             * @default false
             */
            remove_totp?: boolean;
            /**
             * @description `viewer`, `operator` or `administrator`.
             * @default null
             */
            role?: string | null;
        };
        /** @description A client: its session, and its connection if it has one. */
        Client: {
            /**
             * Format: date-time
             * @description End of its connection; null while it is connected.
             */
            away_since: string | null;
            /** @description Client identifier. */
            client_id: string;
            /** @description It is connected. */
            connected: boolean;
            /**
             * Format: date-time
             * @description Start of the connection; null while it is disconnected.
             */
            connected_at: string | null;
            /**
             * Format: uint64
             * @description Seconds since its last packet, or since its connection ended.
             */
            idle_secs: number;
            /** @description Messages that it has not acknowledged. */
            inflight: number;
            /** @description Name of the listener; null while it is disconnected. */
            listener: string | null;
            /**
             * Format: uint64
             * @description Messages that it did not get since its session began, or since the start of the broker,
             *     without those of QoS 0 that were published while it was disconnected.
             */
            messages_dropped: number;
            /**
             * Format: uint32
             * @description Messages from it, on this connection or the last one.
             */
            messages_received: number;
            /**
             * Format: uint32
             * @description Messages to it, on this connection or the last one.
             */
            messages_sent: number;
            /**
             * Format: uint64
             * @description Age of the oldest message in its queue; null if there is none.
             */
            oldest_queued_secs: number | null;
            /**
             * Format: uint64
             * @description Age of the oldest message that it has not acknowledged; null if there is none, or if the
             *     broker keeps no copy of it, as for sessions that end with their connection.
             */
            oldest_unacknowledged_secs: number | null;
            /** @description Address and port, or the kind of connection if it has none; null while it is disconnected. */
            peer: string | null;
            /** @description Its problems now: `queue`, `slow`, `dropping`, `limited`, `near_limit`. */
            problems: string[];
            /** @description `3.1`, `3.1.1` or `5.0`. */
            protocol_version: string;
            /**
             * Format: uint64
             * @description Their bytes.
             */
            queued_bytes: number;
            /**
             * Format: uint64
             * @description Messages in its queue.
             */
            queued_messages: number;
            /**
             * Format: uint32
             * @description Seconds that the session outlives its connection; null: it does not expire.
             */
            session_expiry_secs: number | null;
            /** @description Subscriptions, shared ones included. */
            subscriptions: number;
            /** @description User; null if no user was verified. */
            user: string | null;
        };
        /** @description The certificate of a client. */
        ClientCertificate: {
            /** @description Subject alternative names: DNS names, mail addresses and URIs. */
            alternative_names: string[];
            /** @description The first common name of the subject. */
            common_name: string | null;
            /** @description Serial number in hexadecimal. */
            serial: string;
            /** @description SHA-256 of the DER form in hexadecimal. */
            sha256: string;
            /** @description The subject as RFC 4514 writes it. */
            subject: string;
        };
        /** @description A client in full. */
        ClientDetail: components["schemas"]["Client"] & {
            /** @description The connection, or the last one, began with a clean start. */
            clean_start: boolean;
            connection: components["schemas"]["Connection"] | null;
            /**
             * @description Messages that were not sent to it, by reason, without those of QoS 0 that were published
             *     while it was disconnected.
             */
            dropped: components["schemas"]["Dropped"][];
            /** @description The session is stored on the disk. */
            durable: boolean;
            /** @description Messages from it with QoS 1 and 2 whose exchange is not complete. */
            inflight_received: number;
            limits: components["schemas"]["Limits"] | null;
            /** @description Limit of its queue. */
            queue_limit: components["schemas"]["Queue"];
            rates: components["schemas"]["Rates"] | null;
            /** @description The first 100 subscriptions by filter; the rest is at `/clients/{id}/subscriptions`. */
            subscription_list: components["schemas"]["Subscription"][];
            will: components["schemas"]["Will"] | null;
            /** @description Number of the session's worker. */
            worker: number;
        };
        /** @description Clients by kind, those that match the parameters. */
        ClientFacets: {
            /**
             * Format: uint64
             * @description Wills of disconnected clients, which are published later.
             */
            delayed_wills: number;
            /**
             * Format: uint64
             * @description Messages that were dropped.
             */
            dropped: number;
            /**
             * Format: uint64
             * @description Messages that were sent and not acknowledged.
             */
            inflight: number;
            /** @description Connected clients by listener. */
            listeners: components["schemas"]["Facet"][];
            /**
             * Format: uint64
             * @description All of them.
             */
            matching: number;
            /**
             * Format: uint64
             * @description Users beside these; null if they are too many to be counted.
             */
            other_users: number | null;
            /** @description Clients by problem; a client may have several. */
            problems: components["schemas"]["Facet"][];
            /** @description Messages in all queues, and their bytes. */
            queued: components["schemas"]["Queue"];
            /** @description Clients by state: `connected`, `disconnected`; `persistent` ones are among these. */
            states: components["schemas"]["Facet"][];
            /**
             * Format: uint64
             * @description Subscriptions.
             */
            subscriptions: number;
            /** @description The 20 users with the most clients. */
            users: components["schemas"]["UserFacet"][];
            /** @description Clients by protocol version. */
            versions: components["schemas"]["Facet"][];
            /**
             * Format: uint64
             * @description Clients without a verified user.
             */
            without_user: number;
        };
        /** @description A page of clients. */
        ClientPage: {
            /** @description The clients, in the order of `sort`. */
            clients: components["schemas"]["Client"][];
            /**
             * Format: uint64
             * @description Clients that match the parameters, on all pages together; null with `sort=none`.
             */
            matching: number | null;
            /** @description The `cursor` of the next page; null on the last one. */
            next: string | null;
        };
        /** @description What of a client to ban. */
        ClientToBan: {
            /**
             * @description `client_id` (the default), `user` or `address`.
             * @default
             */
            by?: string;
            /**
             * @description False keeps connected clients, and keeps out those that connect later; they are disconnected
             *     if it is absent.
             * @default null
             */
            disconnect?: boolean | null;
            /**
             * @description Why; the client does not see it.
             * @default
             */
            reason?: string;
            /**
             * Format: uint64
             * @description Seconds until it ends; it never ends without `secs` and `until`.
             * @default null
             */
            secs?: number | null;
            /**
             * @description When it ends.
             * @default null
             */
            until?: string | null;
        };
        /** @description A one-time code. */
        CodeBody: {
            /** @description A one-time code. */
            code: string;
        };
        /** @description A class of commits by their time. */
        CommitTime: {
            /**
             * Format: uint64
             * @description Commits of the class.
             */
            commits: number;
            /**
             * Format: uint64
             * @description Upper bound of the class, exclusive; null for the last class.
             */
            micros_below: number | null;
        };
        /** @description Every key of the configuration. */
        Configuration: {
            /** @description The files that were read, the lowest layer first. */
            files: string[];
            /** @description The keys, in the order of the guide. */
            keys: components["schemas"]["ConfigurationKey"][];
            /** @description The file of keys that are set here; null without a data directory. */
            managed_file: string | null;
            /** @description Why the last reload failed; null if it did not. The configuration before it is in force. */
            reload_failure: string | null;
            /**
             * Format: uint64
             * @description Number of the version of that file; 0 if no key was ever set here.
             */
            version: number;
        };
        /** @description One key. */
        ConfigurationKey: {
            /** @description Its default; null in a table that has a name of your choice. */
            default: unknown;
            /** @description What it is for. */
            description: string;
            /** @description What values there are. */
            expected: string;
            /** @description Its name, such as `limits.max_packet`. */
            key: string;
            /**
             * @description Where the value is from: `default`, `managed` (set here), `file`, `env` or `flag`. Each wins
             *     over those before it.
             */
            origin: string;
            /** @description It is set by a file, a variable or a flag, so that it cannot be changed here. */
            pinned: boolean;
            /** @description A new value takes effect at a restart. */
            restart: boolean;
            /** @description Its values may hold secrets, which are not shown. */
            secret: boolean;
            /** @description The same with the place: `thrum.toml:3`, `env THRUM_NODE__NAME`; null for a default. */
            set_at: string | null;
            /** @description Its value, without secrets. */
            value: unknown;
            /** @description The value is not in force yet: it waits for a restart. */
            waits: boolean;
        };
        /** @description A version of the keys that were set here. */
        ConfigurationVersion: {
            /**
             * Format: date-time
             * @description When it was made; null if it is not known.
             */
            at: string | null;
            /** @description Who made it; null if it is not known. */
            by: string | null;
            /** @description It is in force. */
            current: boolean;
            /** @description The keys that it sets. */
            keys: number;
            /**
             * Format: uint64
             * @description Its number; later ones are higher.
             */
            version: number;
        };
        /** @description The connection of a client. */
        Connection: {
            /**
             * Format: uint64
             * @description Bytes from it, with TLS if there is any; null over Unix sockets and QUIC.
             */
            bytes_received: number | null;
            /**
             * Format: uint64
             * @description Bytes to it, with TLS if there is any; null over Unix sockets and QUIC.
             */
            bytes_sent: number | null;
            /** @description Subject of its certificate; null if it has none. */
            certificate: string | null;
            certificate_details: components["schemas"]["ClientCertificate"] | null;
            /**
             * Format: uint16
             * @description Keep alive in seconds; 0 is no limit.
             */
            keep_alive_secs: number;
            /** @description Reasons why it is slowed or not read now, in words. */
            limited: string[];
            /**
             * Format: uint64
             * @description Bytes of output that wait for the socket or the disk.
             */
            output_bytes: number;
            /**
             * Format: uint32
             * @description The time to it and back in microseconds; null over Unix sockets and QUIC.
             */
            round_trip_micros: number | null;
            /** @description `mqtt`, `mqtts`, `ws`, `wss` or `quic`; null if its listener was removed. */
            scheme: string | null;
            tcp: components["schemas"]["Tcp"] | null;
        };
        /** @description Connections by state. */
        Connections: {
            /**
             * Format: uint64
             * @description The client is being authenticated.
             */
            authenticating: number;
            /**
             * Format: uint64
             * @description The broker waits for CONNECT.
             */
            awaiting_connect: number;
            /**
             * Format: uint64
             * @description The broker writes the last output.
             */
            closing: number;
            /**
             * Format: uint64
             * @description The client has a session.
             */
            established: number;
            /**
             * Format: uint64
             * @description The PROXY header or the handshake of TLS or WebSocket is not complete.
             */
            in_handshake: number;
        };
        /** @description An API key that was added. */
        CreatedKey: components["schemas"]["ApiKey"] & {
            /** @description `thrum_ID_SECRET`, shown once. */
            key: string;
        };
        /** @description A rule that decided. */
        DecidingRule: {
            /** @description The rule as text. */
            rule: string;
            /** @description Where it stands. */
            source: string;
        };
        /** @description A key whose value differs. */
        Difference: {
            /** @description The value after; null if there is none. */
            after: unknown;
            /** @description The value before; null if there was none. */
            before: unknown;
            /** @description Its name. */
            key: string;
            /** @description It takes effect at a restart. */
            restart: boolean;
        };
        /** @description Why messages were dropped. */
        DropCauses: {
            /** @description The causes, the largest first. */
            causes: components["schemas"]["WhyCause"][];
            /**
             * Format: uint64
             * @description Messages that were dropped meanwhile, with those that the rules denied.
             */
            dropped: number;
            /** @description What is not the cause. */
            not_causes: components["schemas"]["NotCause"][];
            /** @description The answer in a sentence. */
            verdict: string;
        };
        /** @description A page of dropped messages, the most frequent first. */
        DropPage: {
            /** @description The combinations of reason, client and topic. */
            drops: components["schemas"]["Drops"][];
            /**
             * Format: uint64
             * @description Combinations that are not listed, because each worker counts only the 1,024 most frequent.
             */
            left_out: number;
            /**
             * Format: uint64
             * @description Combinations that match, on all pages together.
             */
            matching: number;
            /** @description The `cursor` of the next page; null on the last one. */
            next: string | null;
        };
        /** @description Messages that were dropped for one reason. */
        Dropped: {
            /**
             * Format: uint64
             * @description Number of messages.
             */
            messages: number;
            /** @description The reason, as in `$SYS/broker/publish/messages/dropped`. */
            reason: string;
        };
        /** @description Messages that were dropped for one reason, for one client, of one topic. */
        Drops: {
            /**
             * Format: uint64
             * @description How many fewer they may be: above 0 only if there are many combinations.
             */
            at_most_less: number;
            /** @description Client identifier, its first 512 bytes; the shared filter if no member of a group took them. */
            client_id: string;
            /**
             * Format: date-time
             * @description When the last one was dropped.
             */
            last_at: string;
            /**
             * Format: uint64
             * @description Number of messages since the start of the broker.
             */
            messages: number;
            /** @description The reason, as in `$SYS/broker/publish/messages/dropped`. */
            reason: string;
            /**
             * @description Topic, its first 512 bytes; null if it is not known: they were dropped with many others, or
             *     by another worker.
             */
            topic: string | null;
        };
        /** @description Which messages a client did not get, and what would happen to the next one. */
        DropsExplanation: {
            /** @description Client identifier. */
            client_id: string;
            /**
             * @description Messages that it did not get since its session began, or since the start of the broker, by
             *     reason.
             */
            dropped: components["schemas"]["Dropped"][];
            /** @description Its last drops, from its timeline. */
            last: components["schemas"]["TimelineEvent"][];
            /** @description Reasons why it is slowed or not read now, in words. */
            limited: string[];
            /** @description What would happen now to a small message of QoS 0, 1 and 2, in words. */
            now: string[];
            /** @description Its queue and window. */
            queue: components["schemas"]["ExplainedQueue"];
        };
        /** @description A client whose drops are to be explained. */
        DropsToExplain: {
            /** @description Client identifier. */
            client_id: string;
        };
        /** @description An event of a client. */
        Event: (components["schemas"]["NewConnection"] & {
            /** @enum {string} */
            event: "connected";
        }) | {
            /** @enum {string} */
            event: "refused";
            /** @description Address and port, or the kind of connection if it has none. */
            peer: string;
            /** @description Reason in words. */
            reason: string;
            /**
             * Format: uint8
             * @description Reason code of 5.0.
             */
            reason_code: number;
        } | {
            /** @description Why. */
            cause: components["schemas"]["Cause"];
            /**
             * Format: uint32
             * @description Seconds that it lasted.
             */
            connected_secs: number;
            /** @enum {string} */
            event: "disconnected";
            /** @description The session ended with it. */
            session_ended: boolean;
        } | {
            /** @description Why. */
            cause: components["schemas"]["SessionEnding"];
            /** @enum {string} */
            event: "session_ended";
        } | {
            /** @enum {string} */
            event: "subscribed";
            /** @description The filter, with the mount point. */
            filter: string;
            /** @description The rules allow only some of its topics. */
            in_part: boolean;
            /**
             * Format: uint8
             * @description Granted quality of service.
             */
            qos: number;
        } | {
            /** @description Why. */
            cause: components["schemas"]["Refusal"];
            /** @enum {string} */
            event: "subscription_refused";
            /** @description The filter, with the mount point. */
            filter: string;
            /**
             * Format: uint8
             * @description Reason code of 5.0.
             */
            reason_code: number;
        } | {
            /** @enum {string} */
            event: "unsubscribed";
            /** @description The filter, with the mount point. */
            filter: string;
        } | {
            /** @enum {string} */
            event: "subscription_revoked";
            /** @description The filter, with the mount point. */
            filter: string;
        } | {
            /** @description Why. */
            cause: components["schemas"]["Refusal"];
            /** @enum {string} */
            event: "publish_refused";
            /** @description The topic as the client wrote it. */
            topic: string;
        } | {
            /** @enum {string} */
            event: "dropped";
            /** @description The reason, as in `$SYS/broker/publish/messages/dropped`. */
            reason: string;
        } | {
            /** @enum {string} */
            event: "slowed";
            /** @description Key of the limit in the configuration. */
            limit: string;
        } | {
            /** @enum {string} */
            event: "will_published";
            /** @description Its topic. */
            topic: string;
        } | {
            /** @enum {string} */
            event: "will_dropped";
            /** @description Reason in words. */
            reason: string;
            /** @description Its topic. */
            topic: string;
        };
        /** @description A shared group that a PUBLISH matches. */
        ExplainedGroup: {
            /** @description Members whose clients are connected. */
            connected: number;
            /** @description The filter, with `$share/GROUP/`. */
            filter: string;
            /** @description Members. */
            members: number;
            /**
             * @description Client identifier of the member that gets the next message of this client; null if that is
             *     left to chance.
             */
            next: string | null;
            /** @description A value of `shared.strategy`. */
            strategy: string;
            /** @description The choice in words. */
            text: string;
        };
        /** @description How a client was admitted. */
        ExplainedLogin: {
            /** @description What the backend or a token says of it, as `NAME=VALUE`. */
            attributes: string[];
            /**
             * @description The backend that accepted it; null for an anonymous client, for one that its certificate
             *     alone admits, and for a session that was restored after a restart.
             */
            backend: string | null;
            /** @description Its groups. */
            groups: string[];
            /** @description Its roles, also those of its groups. */
            roles: string[];
            /** @description Rules of its own, from the backend or from the store with its groups and roles. */
            rules: number;
            /** @description When its connection began; null while it is disconnected. */
            since: string | null;
            /** @description It may do everything. */
            superuser: boolean;
            /** @description All of it in words. */
            text: string;
            /** @description Its user; null for an anonymous client. */
            user: string | null;
        };
        /** @description The queue and the window of a session. */
        ExplainedQueue: {
            /** @description The client does not take its output. */
            congested: boolean;
            /** @description The client is connected. */
            connected: boolean;
            /** @description Messages with QoS 1 and 2 that may be sent at once. */
            free_window: number;
            /** @description Messages that were sent and not acknowledged. */
            inflight: number;
            /** @description Its limit. */
            limit: components["schemas"]["Queue"];
            /** @description What is in the queue. */
            queued: components["schemas"]["Queue"];
        };
        /** @description A session that a PUBLISH matches. */
        ExplainedReceiver: {
            /** @description Client identifier. */
            client_id: string;
            /** @description Reason of a drop, as in `$SYS/broker/publish/messages/dropped`; null otherwise. */
            drop_reason: string | null;
            /** @description Its filters that match, with the mount point. */
            filters: string[];
            /** @description `sent`, `queued`, `queued_for_older`, `held`, `dropped` or `passed_over`. */
            outcome: string;
            /**
             * Format: uint8
             * @description Quality of service of the delivery.
             */
            qos: number;
            /** @description Its queue and window. */
            queue: components["schemas"]["ExplainedQueue"];
            /** @description The outcome in words. */
            text: string;
        };
        /** @description A step of a packet's way. */
        ExplainedStep: {
            /** @description What is looked at: `access`, `name`, `limit`, `mount_point`, `reserved`, `disk`, `sinks`. */
            check: string;
            /** @description `passes`, `refuses` or `depends` (on an answer that is not known now). */
            outcome: string;
            /**
             * Format: uint8
             * @description Reason code of 5.0; null unless it refuses.
             */
            reason_code: number | null;
            /** @description The step in words. */
            text: string;
        };
        /** @description A value and the number of its clients. */
        Facet: {
            /**
             * Format: uint64
             * @description Clients.
             */
            clients: number;
            /** @description Value, as a filter names it. */
            value: string;
        };
        /** @description A shared group. */
        Group: {
            /** @description Members that are connected. */
            connected: number;
            /** @description Its filter, without `$share/GROUP/`. */
            filter: string;
            /** @description Its name. */
            group: string;
            /** @description Messages that these have not acknowledged. */
            inflight: number;
            /** @description The members, at most 1,000. */
            member_list: components["schemas"]["Member"][];
            /** @description Its members. */
            members: number;
            /**
             * Format: uint64
             * @description Messages in the queues of the members that are listed.
             */
            queued_messages: number;
            /** @description How it chooses a member, as in the configuration. */
            strategy: string;
        };
        /** @description The roles and rules of a group. */
        GroupBody: {
            /**
             * @description Roles of its members.
             * @default []
             */
            roles?: string[];
            /**
             * @description Rules of its members.
             * @default []
             */
            rules?: string[];
        };
        /** @description A page of shared groups, in the order in which they began. */
        GroupPage: {
            /** @description The groups. */
            groups: components["schemas"]["Group"][];
            /** @description The `cursor` of the next page; null on the last one. */
            next: string | null;
        };
        /** @description A message and its delivery. */
        HeldContents: {
            /**
             * Format: uint64
             * @description Seconds since then.
             */
            age_secs: number;
            /**
             * Format: date-time
             * @description Time of expiry; null if it does not expire.
             */
            expires_at: string | null;
            /**
             * @description The shared filter that the client was chosen for, with `$share/GROUP/`; null if there is
             *     none.
             */
            group: string | null;
            /** @description The payload as base64, its first 64 KiB; null without `payload=true`. */
            payload_base64: string | null;
            /**
             * Format: uint64
             * @description Bytes of the payload.
             */
            payload_bytes: number;
            /**
             * Format: uint8
             * @description Quality of service of the delivery.
             */
            qos: number;
            /** @description Retain flag of the delivery. */
            retain: boolean;
            /**
             * Format: date-time
             * @description When it was queued, or sent if it was not queued, in whole seconds.
             */
            since: string;
            /** @description Topic, with the mount point in front. */
            topic: string;
        };
        /** @description A message that the broker holds for a client. */
        HeldMessage: {
            message: components["schemas"]["HeldContents"] | null;
            /**
             * Format: uint16
             * @description Packet identifier; null if it was not sent.
             */
            packet_id: number | null;
            /** @description `queued`, `awaits_puback`, `awaits_pubrec` or `awaits_pubcomp`. */
            stage: string;
        };
        /** @description A page of messages: those in flight, then the queue in its order. */
        HeldPage: {
            /** @description The messages. */
            messages: components["schemas"]["HeldMessage"][];
            /** @description The `cursor` of the next page; null on the last one, and behind 10,000 messages. */
            next: string | null;
        };
        /** @description Figures of each second. */
        History: {
            /**
             * @description Ends of the seconds, in milliseconds of the Unix epoch, the oldest first. A second that
             *     nobody measured is missing.
             */
            at_ms: number[];
            /** @description The values of each figure at these times; null where it is not known. */
            figures: {
                [key: string]: (number | null)[];
            };
            /** @description The time of the newest second, for `since`; null if there is none. */
            newest: string | null;
            /** @description Seconds that are kept. */
            seconds_max: number;
            /** @description The unit of each figure. */
            units: {
                [key: string]: string;
            };
        };
        /** @description The machine, as far as the system tells. */
        Host: {
            /** @description Cores that the process may use. */
            cores: number;
            /**
             * Format: double
             * @description Load average of one minute.
             */
            load: number | null;
            /**
             * Format: uint64
             * @description Memory of the machine.
             */
            memory_bytes: number | null;
            /** @description Its name. */
            name: string | null;
            /** @description Operating system and its version. */
            system: string;
        };
        /** @description The effect of an import. */
        Imported: {
            /** @description Messages that were stored. */
            imported: number;
        };
        /** @description API keys by identifier. */
        KeyList: {
            /** @description At most 1,000, because there are no more. */
            keys: components["schemas"]["ApiKey"][];
        };
        /** @description The effect of a kick. */
        Kicked: {
            /** @description It was connected and has been disconnected. */
            disconnected: boolean;
            /** @description Its session has ended. */
            session_ended: boolean;
        };
        /** @description Where the time of messages went. */
        LatencyCauses: {
            /** @description The causes, the largest first; none if nothing is slow. */
            causes: components["schemas"]["WhyCause"][];
            /**
             * Format: double
             * @description Mean time of a message within the measurement, of those that were delivered and those that
             *     still wait, in milliseconds.
             */
            mean_ms: number;
            /**
             * Format: uint64
             * @description Deliveries whose time was measured.
             */
            measured_deliveries: number;
            /**
             * Format: uint64
             * @description Messages that were delivered meanwhile, about.
             */
            messages: number;
            /** @description What is not the cause. */
            not_causes: components["schemas"]["NotCause"][];
            /**
             * Format: double
             * @description Median of the measured deliveries, in milliseconds.
             */
            p50_ms: number;
            /**
             * Format: double
             * @description Their 99th percentile.
             */
            p99_ms: number;
            /** @description The answer in a sentence. */
            verdict: string;
        };
        /** @description A level to set. */
        LevelChange: {
            /** @description The level; null for that of the configuration. */
            level?: string | null;
            /**
             * Format: uint64
             * @description Seconds until it returns by itself: 1 to 86,400. Default 600.
             */
            seconds?: number | null;
            /**
             * @description The part of the program, such as `thrum_broker::door`; empty for all of the broker, whose
             *     names begin with `thrum`. Libraries, such as `h2`, are named.
             */
            target?: string;
        };
        /** @description Levels of the log. */
        LevelList: {
            /** @description `log.level` of the configuration. */
            level: string;
            /** @description Levels that hold for a time instead, at most 16. */
            raised: components["schemas"]["RaisedLevel"][];
        };
        /** @description Limits of a client, beside that of its queue. */
        Limits: {
            /**
             * Format: uint16
             * @description Messages with QoS 1 and 2 that are sent to it before it acknowledges some; it may ask for
             *     less.
             */
            inflight: number;
            /**
             * Format: uint32
             * @description Bytes of a packet from it.
             */
            packet_bytes: number;
            /**
             * Format: uint32
             * @description Bytes of a payload from it; null without a limit.
             */
            payload_bytes: number | null;
            /**
             * Format: uint32
             * @description Seconds that a message stays in its queue; null without a limit.
             */
            queue_age_secs: number | null;
            /**
             * Format: uint16
             * @description Messages with QoS 1 and 2 that it may have unacknowledged.
             */
            receive_maximum: number;
            /**
             * Format: uint32
             * @description Subscriptions.
             */
            subscriptions: number;
        };
        /** @description Properties of a retained message. */
        LineProperties: {
            /**
             * @description Kind of the payload.
             * @default null
             */
            content_type?: string | null;
            /**
             * @description In base64.
             * @default null
             */
            correlation_data?: string | null;
            /**
             * Format: uint8
             * @description 1: the payload is UTF-8.
             * @default null
             */
            payload_format_indicator?: number | null;
            /**
             * @description Topic for answers.
             * @default null
             */
            response_topic?: string | null;
            /**
             * @description User properties.
             * @default []
             */
            user?: [
                string,
                string
            ][];
        };
        /** @description An address that accepts clients. */
        Listener: {
            /** @description URL for clients. */
            address: string;
            /** @description Name in the configuration. */
            name: string;
        };
        /** @description A listener. */
        ListenerDetail: {
            /** @description URLs for clients; empty unless it is open. */
            addresses: string[];
            /** @description Addresses in the configuration. */
            bind: string[];
            /**
             * Format: uint64
             * @description Connections of clients through it, those in their handshake among them.
             */
            connections: number;
            /** @description Its limits. */
            limits: components["schemas"]["ListenerLimits"];
            /** @description Name in the configuration. */
            name: string;
            /**
             * Format: uint64
             * @description Connections that were refused because of `max_connections`, since the start of the broker.
             */
            refused_over_limit: number;
            /**
             * @description `open`; `stopped` by the operator until the broker is restarted; `closed` if it has no
             *     address.
             */
            state: string;
            tls: components["schemas"]["ListenerTls"] | null;
            /** @description `tcp`, `websocket`, `quic` or `http`. */
            transport: string;
        };
        /** @description Limits of a listener; null is none. */
        ListenerLimits: {
            /** @description Bytes of all its clients. */
            bytes: string | null;
            /** @description New connections, as the configuration writes a rate. */
            connect_rate: string | null;
            /**
             * Format: uint32
             * @description Connections.
             */
            max_connections: number | null;
            /** @description PUBLISH packets of all its clients. */
            messages: string | null;
        };
        /** @description The listeners of the configuration. */
        ListenerList: {
            /** @description By name; all of them, because a person has written them. */
            listeners: components["schemas"]["ListenerDetail"][];
        };
        /** @description TLS of a listener. */
        ListenerTls: {
            /** @description The certificates that it shows, the one without a name first. */
            certificates: components["schemas"]["Certificate"][];
            /** @description The listener whose TLS this is; null if it is its own. */
            from: string | null;
            /** @description Lowest version. */
            min_version: string;
            /** @description Clients get tickets to resume a session. */
            session_tickets: boolean;
        };
        /** @description An event of the log. */
        LogLine: {
            /**
             * Format: date-time
             * @description Time.
             */
            at: string;
            /** @description Its fields by name. */
            fields: {
                [key: string]: string;
            };
            /** @description `error`, `warn`, `info`, `debug` or `trace`. */
            level: string;
            /**
             * Format: uint64
             * @description Its number since the start of the broker; later ones are higher.
             */
            number: number;
            /** @description The part of the program that it is from. */
            target: string;
            /** @description Its text. */
            text: string;
        };
        /** @description A part of the log in memory. */
        LogPage: {
            /** @description The events, the newest first; with `after` the oldest first. */
            events: components["schemas"]["LogLine"][];
            /**
             * Format: uint64
             * @description The `after` that goes on behind this page.
             */
            last: number;
            /**
             * Format: uint64
             * @description With `after`: events behind it that were forgotten before they were read.
             */
            missed: number;
            /**
             * @description The `cursor` of the next page; null on the last one. With `after` it is the next `after` if
             *     there is more.
             */
            next: string | null;
        };
        /** @description Name, password and code of a login. */
        LoginBody: {
            /** @description A one-time code, or a recovery code. */
            code?: string | null;
            /** @description Name of the administrator. */
            name: string;
            /**
             * Format: password
             * @description Password.
             */
            password: string;
        };
        /** @description What became of it. */
        LoginTest: {
            /** @description The client would be admitted. */
            accepted: boolean;
            identity: components["schemas"]["TestedIdentity"] | null;
            /** @description Why it is refused, for the operator; null if it is accepted. */
            reason: string | null;
            /**
             * Format: uint8
             * @description Reason code of a CONNACK of 5.0; null if it is accepted.
             */
            reason_code: number | null;
            /** @description What each backend of the chain answered, in the order in which they were asked. */
            steps: components["schemas"]["LoginTestStep"][];
            /** @description What the client is told; null if it is accepted. */
            told: string | null;
        };
        /** @description The answer of a backend. */
        LoginTestStep: {
            /** @description Its name in the configuration. */
            backend: string;
            /**
             * Format: uint64
             * @description How long it took, in milliseconds.
             */
            millis: number;
            /** @description Why, for the operator; null if there is nothing to add. */
            reason: string | null;
            /** @description `accepted`, `refused`, `not_responsible` (the next one is asked), `failed` or `not_asked`. */
            verdict: string;
        };
        /** @description A login to test. */
        LoginToTest: {
            /** @description Address of the client. */
            address?: string | null;
            /** @description The user name is that of a verified certificate: no password is needed. */
            by_certificate?: boolean;
            /** @description Client identifier. */
            client_id?: string;
            /** @description Listener, whose chain is asked; `mqtt` if absent. */
            listener?: string | null;
            /**
             * Format: password
             * @description Its password or token.
             */
            password?: string | null;
            /** @description User name; null for an anonymous client. */
            user?: string | null;
        };
        /** @description A member of a shared group. Its figures contain those of its other subscriptions. */
        Member: {
            /** @description Client identifier. */
            client_id: string;
            /** @description It is connected. */
            connected: boolean;
            /**
             * Format: uint64
             * @description Seconds since its last packet, or since its connection ended.
             */
            idle_secs: number;
            /** @description Messages that it has not acknowledged. */
            inflight: number;
            /**
             * Format: uint64
             * @description Age of the oldest message in its queue; null if there is none.
             */
            oldest_queued_secs: number | null;
            /**
             * Format: uint64
             * @description Age of the oldest message that it has not acknowledged; null if there is none.
             */
            oldest_unacknowledged_secs: number | null;
            /** @description Its problems now. */
            problems: string[];
            /**
             * Format: uint64
             * @description Their bytes.
             */
            queued_bytes: number;
            /**
             * Format: uint64
             * @description Messages in its queue.
             */
            queued_messages: number;
            /** @description User; null if no user was verified. */
            user: string | null;
        };
        /** @description Memory of the process. */
        Memory: {
            /**
             * Format: uint64
             * @description `limits.memory`; null if there is none.
             */
            limit_bytes: number | null;
            /**
             * Format: uint64
             * @description Resident bytes; null if the system does not report them.
             */
            resident_bytes: number | null;
        };
        /** @description A message to publish. */
        Message: {
            /**
             * Format: uint32
             * @description Seconds after which it is no longer delivered.
             * @default null
             */
            expiry_secs?: number | null;
            /**
             * @description The payload as text.
             * @default null
             */
            payload?: string | null;
            /**
             * @description The payload as base64, instead of text.
             * @default null
             */
            payload_base64?: string | null;
            /**
             * Format: uint8
             * @description Quality of service.
             * @default 0
             */
            qos?: number;
            /**
             * @description It becomes the retained message of its topic; an empty payload removes that.
             * @default false
             */
            retain?: boolean;
            /**
             * @description Topic name, with the mount point in front.
             * @default
             */
            topic?: string;
        };
        /** @description Counters of the broker since its start. */
        Metrics: {
            /**
             * @description Requests to backends of authentication and their answers, by their names below
             *     `$SYS/broker/`.
             */
            backends: {
                [key: string]: number;
            };
            /** @description Counters and gauges by their names below `$SYS/broker/`. */
            counters: {
                [key: string]: number;
            };
            storage: components["schemas"]["Storage"] | null;
        };
        /** @description An administrator to add. */
        NewAdministrator: {
            /** @description Name. */
            name: string;
            /**
             * Format: password
             * @description 12 to 1,024 characters.
             */
            password: string;
            /** @enum {string} */
            role: "viewer" | "operator" | "administrator";
        };
        /** @description An API key to add. */
        NewApiKey: {
            /**
             * Format: uint64
             * @description Seconds until it expires; null if it does not, 90 days if absent.
             * @default 7776000
             */
            expires_secs?: number | null;
            /** @description A text for people, such as the name of the program. */
            label: string;
            /** @description What it may do. */
            scopes: ("clients:read" | "clients:write" | "messages:read" | "messages:write" | "config:read" | "config:write" | "users:read" | "users:write" | "logs:read" | "audit:read" | "metrics:read" | "admin")[];
        };
        /** @description A connection that the broker has accepted. */
        NewConnection: {
            /**
             * Format: uint16
             * @description Keep alive in seconds; 0 is no limit.
             */
            keep_alive_secs: number;
            /** @description Name of the listener. */
            listener: string;
            /** @description Address and port, or the kind of connection if it has none. */
            peer: string;
            /** @description `3.1`, `3.1.1` or `5.0`. */
            protocol_version: string;
            /**
             * Format: uint32
             * @description Seconds that the session outlives its connection; null: it does not expire.
             */
            session_expiry_secs: number | null;
            /** @description The connection resumed an existing session. */
            session_present: boolean;
        };
        /** @description A filter whose messages are to be counted. */
        NewTopicMetric: {
            /** @description A topic filter, without a shared group. */
            filter: string;
        };
        /** @description A user to add. */
        NewUser: {
            /** @description It may not log in. */
            disabled?: boolean;
            /** @description Its groups. */
            groups?: string[];
            /** @description Name. */
            name: string;
            /**
             * Format: password
             * @description Null: it cannot log in with a password.
             */
            password?: string | null;
            /** @description Its roles. */
            roles?: string[];
            /** @description Its own rules, such as `allow pubsub devices/%c/#`. */
            rules?: string[];
            /** @description It may log in with SCRAM-SHA-256 as well. */
            scram?: boolean;
            /** @description It may do everything. */
            superuser?: boolean;
        };
        /** @description A node. */
        Node: {
            /** @description The machine. */
            host: components["schemas"]["Host"];
            /** @description Its limits. */
            limits: components["schemas"]["NodeLimits"];
            /**
             * Format: uint64
             * @description How short memory is, from 0 (not at all) to 4 (new clients are refused).
             */
            memory_level: number;
            /** @description The process. */
            process: components["schemas"]["Process"];
            /**
             * Format: date-time
             * @description When the broker started.
             */
            started_at: string;
            /**
             * Format: uint64
             * @description Seconds since then.
             */
            uptime_secs: number;
            /** @description Version of the program. */
            version: string;
            /** @description Its workers, by number. */
            workers: components["schemas"]["Worker"][];
        };
        /** @description Limits; null is none. */
        NodeLimits: {
            /**
             * Format: uint64
             * @description `limits.memory`.
             */
            memory_bytes: number | null;
            /**
             * Format: uint64
             * @description Open files of the process.
             */
            open_files: number | null;
        };
        /** @description Something that is not the cause. */
        NotCause: {
            /** @description Its name, which does not change between versions. */
            name: string;
            /** @description The figure that tells. */
            sentence: string;
            /**
             * Format: double
             * @description Its part, from 0 to 1.
             */
            share: number;
        };
        /**
         * @description Whether a message was delivered.
         * @enum {string}
         */
        Outcome: "delivered" | "no_subscribers";
        /** @description Another password. */
        Password: {
            /**
             * Format: password
             * @description 12 to 1,024 characters.
             */
            password: string;
            /** @description It logs in without a one-time code from now on. */
            remove_totp?: boolean;
        };
        /** @description The password before and after. */
        PasswordBody: {
            /**
             * Format: password
             * @description 12 to 1,024 characters.
             */
            new_password: string;
            /**
             * Format: password
             * @description The one before.
             */
            password: string;
        };
        /** @description An alarm that was cleared. */
        PastAlarm: components["schemas"]["Alarm"] & {
            /**
             * Format: date-time
             * @description Until when.
             */
            cleared_at: string;
            /**
             * Format: uint64
             * @description Its number; later ones are higher.
             */
            number: number;
        };
        /** @description What a change would do. */
        Plan: {
            /**
             * @description What would differ from what is in force. Changes in files since the last reload are among
             *     them.
             */
            differences: components["schemas"]["Difference"][];
            /** @description For `/config/apply`. */
            fingerprint: string;
            /** @description Keys that would wait for a restart. */
            restart: string[];
        };
        /** @description Changes to plan. */
        PlanRequest: {
            /** @description Keys and their new values; null takes a key back. Without any, what a reload would change. */
            changes?: {
                [key: string]: unknown;
            };
        };
        /** @description An error with its cause and its remedy. */
        Problem: {
            /** @description Cause of this error. */
            detail: string;
            /** @description Remedy. */
            remedy: string;
            /**
             * Format: uint64
             * @description Seconds after which the same request may succeed; also in the header `Retry-After`.
             */
            retry_after_secs?: number | null;
            /**
             * Format: uint16
             * @description Status code of the response.
             */
            status: number;
            /** @description Kind of the error. */
            title: string;
        };
        /** @description The process; null is what the system does not tell. */
        Process: {
            /**
             * Format: double
             * @description CPU time since the start.
             */
            cpu_secs: number | null;
            /**
             * Format: uint32
             * @description Its number.
             */
            id: number;
            /**
             * Format: uint64
             * @description Open files, sockets among them.
             */
            open_files: number | null;
            /**
             * Format: uint64
             * @description Resident memory.
             */
            resident_bytes: number | null;
            /**
             * Format: uint64
             * @description Threads.
             */
            threads: number | null;
        };
        /** @description What would happen to a PUBLISH. */
        PublishExplanation: {
            /** @description It would be accepted; null if that depends on an answer that is not known now. */
            accepted: boolean | null;
            /** @description Shared groups that it matches. */
            groups: components["schemas"]["ExplainedGroup"][];
            /** @description Reasons why the client is slowed or not read now, in words. */
            limited: string[];
            login: components["schemas"]["ExplainedLogin"] | null;
            /** @description Subscriptions that it matches, of all of these: one session may have several. */
            matching_subscriptions: number;
            /** @description Sessions beyond them. */
            more_receivers: number;
            /** @description Sessions that it matches, at most 100. */
            receivers: components["schemas"]["ExplainedReceiver"][];
            /** @description The steps up to the receivers; the last one may refuse it. */
            steps: components["schemas"]["ExplainedStep"][];
            /** @description The topic by which receivers are found, with the mount point; null if it is refused. */
            topic: string | null;
        };
        /** @description A PUBLISH to be explained. */
        PublishToExplain: {
            /** @description Client identifier. */
            client_id: string;
            /** @description Bytes of the payload; 0 if absent. */
            payload_bytes?: number;
            /**
             * Format: uint8
             * @description Quality of service; 0 if absent.
             */
            qos?: number;
            /** @description It is to be retained. */
            retain?: boolean;
            /** @description The topic as the client writes it. */
            topic: string;
        };
        /** @description The outcome of a message. */
        Published: {
            /** @description Whether it was delivered. */
            outcome: components["schemas"]["Outcome"];
            /** @description It is the retained message of its topic, or has removed it. */
            retained: boolean;
        };
        /** @description The outcomes of the messages of a batch. */
        PublishedBatch: {
            /** @description One for each message, in their order. */
            outcomes: components["schemas"]["BatchItem"][];
            /** @description Messages that were refused. */
            refused: number;
        };
        /** @description The publisher of a retained message. */
        Publisher: {
            /** @description Address; null if it is not known. */
            address: string | null;
            /** @description Client identifier. */
            client_id: string;
            /** @description User; null if no user was verified. */
            user: string | null;
        };
        /** @description Messages and bytes. */
        Queue: {
            /**
             * Format: uint64
             * @description Bytes.
             */
            bytes: number;
            /**
             * Format: uint64
             * @description Messages.
             */
            messages: number;
        };
        /** @description A level for a time. */
        RaisedLevel: {
            /** @description Level. */
            level: string;
            /**
             * Format: uint64
             * @description Seconds until the level of the configuration holds again.
             */
            seconds_left: number;
            /** @description The part of the program; empty for all parts whose names begin with `thrum`. */
            target: string;
        };
        /** @description Messages and bytes in a second. */
        Rates: {
            /**
             * Format: double
             * @description Bytes from it; null over Unix sockets and QUIC.
             */
            bytes_received: number | null;
            /**
             * Format: double
             * @description Bytes to it that it acknowledged; null over Unix sockets and QUIC.
             */
            bytes_sent: number | null;
            /**
             * Format: double
             * @description Messages from it.
             */
            messages_received: number;
            /**
             * Format: double
             * @description Messages to it.
             */
            messages_sent: number;
            /**
             * Format: uint64
             * @description Milliseconds over which they were measured.
             */
            millis: number;
        };
        /** @description Codes for the loss of the app, shown once. */
        RecoveryCodes: {
            /** @description Each is valid once. */
            recovery_codes: string[];
        };
        /** @description Why the broker refused a packet or a part of it. */
        Refusal: {
            /** @enum {string} */
            kind: "rule";
            /** @description The rule and its place, or that no rule allows it. */
            rule: string;
        } | {
            /** @enum {string} */
            kind: "limit";
            /** @description Key of the limit in the configuration. */
            limit: string;
        } | {
            /** @enum {string} */
            kind: "other";
            /** @description Reason in words. */
            reason: string;
        };
        /** @description A reload. */
        Reloaded: {
            /** @description Keys that have changed. */
            changed: string[];
            /** @description Keys that wait for a restart. */
            restart: string[];
        };
        /** @description A retained message. */
        Retained: {
            /**
             * Format: date-time
             * @description Time of expiry; null if it does not expire.
             */
            expires_at: string | null;
            /**
             * Format: uint64
             * @description Bytes of the payload.
             */
            payload_bytes: number;
            /**
             * Format: date-time
             * @description Time of publication.
             */
            published_at: string;
            publisher: components["schemas"]["Publisher"] | null;
            /**
             * Format: uint8
             * @description Quality of service as published.
             */
            qos: number;
            /** @description Topic. */
            topic: string;
            /** @description It is not sent to new subscribers: its publisher may no longer publish it. */
            withheld: boolean;
        };
        /** @description A retained message with its payload and its properties. */
        RetainedDetail: {
            /** @description Its line in an export. */
            content: components["schemas"]["RetainedLine"];
            /** @description Its row in a listing. */
            message: components["schemas"]["Retained"];
        };
        /** @description A retained message. */
        RetainedLine: {
            /**
             * Format: date-time
             * @description Time of expiry.
             */
            expires_at?: string | null;
            /** @description The payload in base64. */
            payload?: string | null;
            properties?: components["schemas"]["LineProperties"] | null;
            /**
             * Format: date-time
             * @description Time of publication; none is the time of the import.
             */
            published_at?: string | null;
            /**
             * Format: uint8
             * @description Quality of service.
             */
            qos?: number;
            /** @description The payload if it is UTF-8. */
            text?: string | null;
            /** @description Topic. */
            topic: string;
        };
        /** @description A page of retained messages, in the order of the store. */
        RetainedPage: {
            /** @description The messages; fewer than `limit`, or none, if the filter matches few of many topics. */
            messages: components["schemas"]["Retained"][];
            /** @description The `cursor` of the next page; null on the last one. */
            next: string | null;
        };
        /** @description The effect of a removal. */
        RetainedRemoval: {
            /** @description The first topics, at most ten. */
            examples: string[];
            /**
             * Format: uint64
             * @description Retained messages that match the filter.
             */
            matching: number;
            /**
             * Format: uint64
             * @description Bytes of their payloads.
             */
            payload_bytes: number;
            /**
             * Format: uint64
             * @description Messages that were removed: none by a dry run.
             */
            removed: number;
        };
        /** @description A role: rules with a name. */
        Role: {
            /** @description Name. */
            name: string;
            /** @description Its rules. */
            rules: string[];
        };
        /** @description The rules of a role. */
        RoleBody: {
            /** @description Its rules. */
            rules: string[];
        };
        /** @description A page of roles in the order of their names. */
        RoleList: {
            /** @description The `cursor` of the next page; null on the last one. */
            next: string | null;
            /** @description The roles. */
            roles: components["schemas"]["Role"][];
        };
        /** @description A version to return to. */
        RollbackRequest: {
            /**
             * Format: uint64
             * @description Its number; 0 is no key set here.
             */
            version: number;
        };
        /** @description A rule in force. */
        Rule: {
            /** @description `rules`: for all clients; `client`: the client's own, and those of its groups and roles. */
            of: string;
            /** @description Its place in the order in which rules are asked, from 1; the first that matches decides. */
            position: number;
            /** @description The rule as text. */
            rule: string;
            /** @description Where it stands: a file and its line, `acl.rules[3]`, a user, a role, a backend. */
            source: string;
        };
        /** @description A page of rules. */
        RulePage: {
            /** @description The `cursor` of the next page; null on the last one. */
            next: string | null;
            /** @description The values of `acl.order`: `rules`, `client`, and `remote` for backends that are asked. */
            order: string[];
            /** @description `allowed` or `denied`: what is decided about topics that no rule matches. */
            otherwise: string;
            /** @description The rules in their order. */
            rules: components["schemas"]["Rule"][];
            /** @description The client may do everything, whatever the rules say. */
            superuser: boolean;
        };
        /** @description A session. */
        Session: {
            /** @description Address of the login; null over the control socket. */
            address: string | null;
            /** @description Its administrator. */
            administrator: string;
            /**
             * Format: date-time
             * @description Time of the login.
             */
            began_at: string;
            /** @description It is the session of this request. */
            current: boolean;
            /** @description Its identifier, by which it can be ended. */
            id: string;
            /**
             * Format: date-time
             * @description Time of its last request.
             */
            used_at: string;
        };
        /** @description Why a session ended. */
        SessionEnding: {
            /** @enum {string} */
            kind: "expired";
            /**
             * Format: uint32
             * @description Session expiry in seconds.
             */
            session_expiry_secs: number;
        } | {
            /** @enum {string} */
            kind: "clean_start";
        } | {
            /** @enum {string} */
            kind: "by_operator";
        };
        /** @description Sessions, by administrator and age. */
        SessionList: {
            /** @description At most 2,000, because there are no more. */
            sessions: components["schemas"]["Session"][];
        };
        /** @description The first administrator. */
        SetupBody: {
            /** @description Name. */
            name: string;
            /**
             * Format: password
             * @description 12 to 1,024 characters.
             */
            password: string;
            /**
             * Format: password
             * @description `t` of the link.
             */
            token: string;
        };
        /** @description The link of the first start. */
        SetupLink: {
            /** @description `setup?t=…`, relative to the address of the broker's HTTP port. */
            path: string;
        };
        /** @description A summary of the broker. */
        Status: {
            /**
             * Format: uint64
             * @description Clients that are connected.
             */
            clients_connected: number;
            /** @description Connections by state. */
            connections: components["schemas"]["Connections"];
            /** @description Addresses that accept clients. */
            listeners: components["schemas"]["Listener"][];
            /** @description Memory of the process. */
            memory: components["schemas"]["Memory"];
            /**
             * Format: uint64
             * @description Their memory.
             */
            retained_bytes: number;
            /**
             * Format: uint64
             * @description Retained messages of clients, without those of the broker.
             */
            retained_messages: number;
            /**
             * Format: uint64
             * @description Sessions, also those without a connection.
             */
            sessions: number;
            /**
             * Format: uint64
             * @description Sessions that outlive their connection.
             */
            sessions_persistent: number;
            /**
             * Format: date-time
             * @description When the broker started.
             */
            started_at: string;
            /** @description `healthy`, `full` or `failing`; null of a broker that keeps everything in memory. */
            storage: string | null;
            /**
             * Format: uint64
             * @description Subscriptions, shared ones included.
             */
            subscriptions: number;
            /**
             * Format: uint64
             * @description Seconds since then.
             */
            uptime_secs: number;
            /** @description Version of the program. */
            version: string;
            /** @description Worker threads. */
            workers: number;
        };
        /** @description A listener that was stopped or started. */
        StoppedListener: {
            /** @description The listener as it is now. */
            listener: components["schemas"]["ListenerDetail"];
            /** @description How long that holds; null if it is as configured. */
            until: string | null;
        };
        /** @description The work of the storage. */
        Storage: {
            /**
             * Format: uint64
             * @description Sum of their times in microseconds.
             */
            commit_micros: number;
            /** @description Commits by their time. */
            commit_times: components["schemas"]["CommitTime"][];
            /** @description Counters by their names below `$SYS/broker/`. */
            counters: {
                [key: string]: number;
            };
            /** @description `healthy`, `full` or `failing`. */
            health: string;
        };
        /** @description What the storage has on its disk. */
        StorageDisk: {
            /**
             * Format: uint64
             * @description Reads, renames and removals that failed meanwhile; they are tried again.
             */
            cleaning_failures: number;
            /**
             * Format: uint64
             * @description Sum of their times in microseconds.
             */
            commit_micros: number;
            /** @description Commits by their time, write and sync. */
            commit_times: components["schemas"]["CommitTime"][];
            /**
             * Format: uint64
             * @description Commits that became durable.
             */
            commits: number;
            /**
             * Format: uint64
             * @description Commits that failed.
             */
            commits_failed: number;
            /**
             * Format: uint64
             * @description Damaged places that were found.
             */
            damaged_places: number;
            /**
             * Format: uint64
             * @description `storage.max_disk`.
             */
            max_bytes: number;
            /**
             * Format: uint64
             * @description Messages.
             */
            messages: number;
            /**
             * Format: uint64
             * @description Of these, bytes that are current; the rest is cleaned when room is needed.
             */
            needed_bytes: number;
            /**
             * Format: uint64
             * @description Records that were moved for that.
             */
            records_moved: number;
            /**
             * Format: uint64
             * @description Files of the log.
             */
            segments: number;
            /**
             * Format: uint64
             * @description Segments that were cleaned since the start.
             */
            segments_cleaned: number;
            /**
             * Format: uint64
             * @description Sessions with state.
             */
            sessions: number;
            /**
             * Format: uint64
             * @description Their bytes.
             */
            used_bytes: number;
            /**
             * Format: uint64
             * @description Bytes that wait for a commit.
             */
            waiting_bytes: number;
        };
        /** @description The durable storage. */
        StorageState: {
            disk: components["schemas"]["StorageDisk"] | null;
            /** @description `memory` if nothing is kept on disk; else `healthy`, `full` or `failing`. */
            health: string;
        };
        /** @description What would happen to a filter. */
        SubscribeExplanation: {
            /** @description The filter with the mount point; null if it is refused before. */
            filter: string | null;
            /** @description It would be granted; null if that depends on an answer that is not known now. */
            granted: boolean | null;
            /** @description The rules allow only some of its topics: each message is checked. */
            in_part: boolean;
            login: components["schemas"]["ExplainedLogin"] | null;
            /**
             * Format: uint8
             * @description Granted quality of service; null if it is refused.
             */
            qos: number | null;
            /** @description It replaces a subscription. */
            replaces: boolean;
            /** @description The steps; the last one may refuse it. */
            steps: components["schemas"]["ExplainedStep"][];
        };
        /** @description A filter to be explained. */
        SubscribeToExplain: {
            /** @description Client identifier. */
            client_id: string;
            /** @description The filter as the client writes it. */
            filter: string;
            /**
             * Format: uint8
             * @description Quality of service; 0 if absent.
             */
            qos?: number;
        };
        /** @description A subscription. */
        Subscription: {
            /** @description Client identifier of its session. */
            client_id: string;
            /** @description The filter with the mount point of the client, and with `$share/GROUP/` if it is shared. */
            filter: string;
            /**
             * Format: uint32
             * @description Subscription identifier; null if there is none.
             */
            identifier: number | null;
            /** @description The client does not receive its own messages. */
            no_local: boolean;
            /**
             * Format: uint8
             * @description Quality of service that was granted.
             */
            qos: number;
            /** @description Messages keep their retain flag. */
            retain_as_published: boolean;
            /**
             * Format: uint8
             * @description 0: retained messages at each SUBSCRIBE, 1: if it is new, 2: never.
             */
            retain_handling: number;
        };
        /** @description A page of subscriptions, by client identifier and then by filter. */
        SubscriptionPage: {
            /** @description The `cursor` of the next page; null on the last one. */
            next: string | null;
            /** @description The subscriptions. */
            subscriptions: components["schemas"]["Subscription"][];
        };
        /** @description Counts of a socket, as the system knows them. */
        Tcp: {
            /**
             * Format: uint32
             * @description Segments that may be sent without an acknowledgement.
             */
            congestion_window: number;
            /**
             * Format: uint32
             * @description Segments that were sent again.
             */
            retransmitted: number;
            /**
             * Format: uint32
             * @description Mean deviation of the round trip in microseconds.
             */
            round_trip_deviation_micros: number;
            /**
             * Format: uint32
             * @description Milliseconds since the last data or acknowledgement from it.
             */
            silent_millis: number;
            /**
             * Format: uint32
             * @description Segments that were sent and not acknowledged.
             */
            unacknowledged: number;
            /**
             * Format: uint32
             * @description Bytes in the socket that were not sent yet; null if the system does not report them.
             */
            unsent_bytes: number | null;
        };
        /** @description Who a client would be. */
        TestedIdentity: {
            /** @description Claims of its token, or attributes that the backend told. */
            attributes: string[];
            /**
             * @description The backend that admits it; null for an anonymous client, and for one that its certificate
             *     alone admits.
             */
            backend: string | null;
            /** @description When it is disconnected, because its token ends; null if it does not. */
            expires_at: string | null;
            /** @description Groups. */
            groups: string[];
            /** @description Roles, its own and those of its groups. */
            roles: string[];
            /** @description It may do everything. */
            superuser: boolean;
            /** @description User; null for an anonymous client. */
            user: string | null;
        };
        /** @description The last events of a client. */
        Timeline: {
            /** @description Client identifier. */
            client_id: string;
            /** @description At most 200 events, the oldest first. */
            events: components["schemas"]["TimelineEvent"][];
            /**
             * Format: uint64
             * @description Events before them that are known to be forgotten; there may be others.
             */
            forgotten: number;
        };
        /** @description An event, or several that repeat each other. */
        TimelineEvent: components["schemas"]["Event"] & {
            /**
             * Format: date-time
             * @description When it happened, or began to happen.
             */
            at: string;
            /**
             * Format: uint64
             * @description How often it happened; messages, if they were dropped.
             */
            count: number;
            /**
             * Format: date-time
             * @description When it happened last.
             */
            last_at: string;
            /**
             * Format: uint32
             * @description Events of such kinds that happened beside it and are not listed.
             */
            others: number;
            /** @description The event in words. */
            text: string;
        };
        /** @description A topic, or a level of topics, with everything below it. */
        Topic: {
            /**
             * Format: double
             * @description Bytes of payloads in a second, of the last seconds.
             */
            bytes_per_second: number;
            /**
             * Format: uint32
             * @description Topics or levels right below it, as far as one worker of the broker has seen them.
             */
            children: number;
            /** @description When the last message came; null if there was none. */
            last_at: string | null;
            /**
             * Format: uint64
             * @description Messages since the observation began, with those of the topics below.
             */
            messages: number;
            /**
             * Format: double
             * @description Messages in a second, of the last seconds.
             */
            messages_per_second: number;
            /** @description Its level. */
            name: string;
            /**
             * Format: uint64
             * @description Bytes of their payloads.
             */
            payload_bytes: number;
            /** @description The whole topic. */
            topic: string;
            value: components["schemas"]["TopicMessage"] | null;
        };
        /** @description A topic in full. */
        TopicInFull: {
            figures: components["schemas"]["Topic"] | null;
            /**
             * Format: uint64
             * @description Shared groups that are subscribed to it.
             */
            groups: number;
            /** @description When the observation began. */
            observed_since: string;
            /** @description Its publishers since then, the most frequent first. */
            publishers: components["schemas"]["TopicPublisher"][];
            /** @description It has a retained message. */
            retained: boolean;
            /**
             * Format: uint64
             * @description Sessions that are subscribed to it by filters without a group.
             */
            subscribers: number;
            /** @description The topic. */
            topic: string;
            /** @description Its last messages since somebody looks at it, at most 20, the oldest first. */
            values: components["schemas"]["TopicMessage"][];
        };
        /** @description A message of a topic. */
        TopicMessage: {
            /** @description When it came. */
            at: string;
            /** @description The payload is longer than what is shown. */
            cut: boolean;
            /**
             * Format: uint64
             * @description Messages with exactly this topic since the observation began; null in `values`.
             */
            messages: number | null;
            /**
             * @description The payload, or its beginning, as text; null if it is no text, and without the scope
             *     `messages:read`.
             */
            payload: string | null;
            /** @description The same in base64, if it is no text; null without the scope `messages:read`. */
            payload_base64: string | null;
            /**
             * Format: uint32
             * @description Bytes of its payload.
             */
            payload_bytes: number;
            /** @description Client identifier of its publisher; null if it is not known, or the broker itself. */
            publisher: string | null;
            /**
             * Format: uint8
             * @description Its quality of service.
             */
            qos: number;
            /** @description Its RETAIN flag. */
            retain: boolean;
        };
        /** @description Figures of the messages that match a filter. */
        TopicMetric: {
            /**
             * Format: uint64
             * @description Bytes of their payloads.
             */
            bytes_delivered: number;
            /**
             * Format: uint64
             * @description Bytes of their payloads.
             */
            bytes_received: number;
            /**
             * Format: double
             * @description Messages that sessions took in a second, of the last seconds.
             */
            delivered_per_second: number;
            /** @description The filter. */
            filter: string;
            /**
             * Format: uint64
             * @description Messages that sessions took: sent, or queued.
             */
            messages_delivered: number;
            /**
             * Format: uint64
             * @description Messages that sessions did not get.
             */
            messages_dropped: number;
            /**
             * Format: uint64
             * @description Messages that were published.
             */
            messages_received: number;
            /** @description Messages that were published, by quality of service: 0, 1 and 2. */
            received_by_qos: number[];
            /**
             * Format: double
             * @description Messages published in a second, of the last seconds.
             */
            received_per_second: number;
            /** @description When counting began: when the filter was added, or the broker started. */
            since: string;
        };
        /** @description All filters with figures. */
        TopicMetricList: {
            /** @description How many filters there may be. */
            most: number;
            /** @description In the order of the filters. */
            topic_metrics: components["schemas"]["TopicMetric"][];
        };
        /** @description A page of topics. */
        TopicPage: {
            /** @description The `cursor` of the next page; null on the last one. */
            next: string | null;
            node: components["schemas"]["Topic"] | null;
            /** @description When the observation began. */
            observed_since: string;
            /**
             * Format: uint64
             * @description Messages below the level whose topics found no room; null if not all children are here.
             */
            others: number | null;
            /** @description The topics or levels, in the order of `sort`. */
            topics: components["schemas"]["Topic"][];
        };
        /** @description A publisher of a topic. */
        TopicPublisher: {
            /** @description Client identifier; null for the broker itself: wills, events, and messages of the operator. */
            client_id: string | null;
            /**
             * Format: uint64
             * @description Its messages with this topic.
             */
            messages: number;
        };
        /** @description The secret of one-time codes, shown once; not in force before its first code. */
        TotpSecret: {
            /** @description `otpauth://…`, to be shown as a QR code. */
            address: string;
            /** @description In base32, to be typed into an app. */
            secret: string;
        };
        /** @description A user; its password is never shown. */
        User: {
            /** @description It may not log in. */
            disabled: boolean;
            /** @description Its groups. */
            groups: string[];
            /** @description Name. */
            name: string;
            /** @description Algorithm of the hash of its password, such as `argon2id`; null if it has none. */
            password: string | null;
            /** @description Its roles, without those of its groups. */
            roles: string[];
            /** @description Its own rules, which are asked before those of its groups and roles. */
            rules: string[];
            /** @description It may log in with SCRAM-SHA-256. */
            scram: boolean;
            /** @description It may do everything. */
            superuser: boolean;
        };
        /** @description What changes of a user; null keeps it, and a list replaces the list, but for `add_rules`. */
        UserChange: {
            /**
             * @description Rules that follow its own: those of others who add some at the same time stay.
             * @default null
             */
            add_rules?: string[] | null;
            /**
             * @description It may not log in; its clients are disconnected.
             * @default null
             */
            disabled?: boolean | null;
            /**
             * @description Its groups.
             * @default null
             */
            groups?: string[] | null;
            /**
             * @description Its roles.
             * @default null
             */
            roles?: string[] | null;
            /**
             * @description Its own rules.
             * @default null
             */
            rules?: string[] | null;
            /**
             * @description It may do everything.
             * @default null
             */
            superuser?: boolean | null;
        };
        /** @description What a change did. */
        UserChanged: {
            /**
             * Format: uint64
             * @description Its clients that are disconnected because of the change.
             */
            disconnected: number;
            /**
             * Format: uint64
             * @description Clients with its name that stay connected: ask again, unless another backend admitted them.
             */
            left: number;
            user: components["schemas"]["User"] | null;
        };
        /** @description A user and the number of its clients. */
        UserFacet: {
            /**
             * Format: uint64
             * @description How many fewer they may be: above 0 only if there are thousands of users.
             */
            at_most_less: number;
            /**
             * Format: uint64
             * @description Clients.
             */
            clients: number;
            /** @description User. */
            user: string;
        };
        /** @description A group: what its members have in common. */
        UserGroup: {
            /** @description Name. */
            name: string;
            /** @description Roles of its members. */
            roles: string[];
            /** @description Rules of its members. */
            rules: string[];
        };
        /** @description A page of groups in the order of their names. */
        UserGroupList: {
            /** @description The groups. */
            groups: components["schemas"]["UserGroup"][];
            /** @description The `cursor` of the next page; null on the last one. */
            next: string | null;
        };
        /** @description A page of users in the order of their names. */
        UserPage: {
            /** @description The `cursor` of the next page; null on the last one. */
            next: string | null;
            /** @description Users in the store. */
            total: number;
            /** @description The users. */
            users: components["schemas"]["User"][];
        };
        /** @description Another password of a user. */
        UserPassword: {
            /** @description Disconnect its clients, which have logged in with the old one. */
            disconnect?: boolean;
            /**
             * Format: password
             * @description The password.
             */
            password: string;
            /** @description It may log in with SCRAM-SHA-256; null keeps that. */
            scram?: boolean | null;
        };
        /** @description What was imported. */
        UsersImported: {
            /** @description Users that were not there. */
            added: number;
            /** @description Users that were there: they have the imported password, and keep roles, groups and rules. */
            replaced: number;
        };
        /** @description The versions that can be returned to. */
        VersionList: {
            /** @description The newest first; at most 20, because no more are kept. */
            versions: components["schemas"]["ConfigurationVersion"][];
        };
        /** @description Who the caller is. */
        Whoami: {
            /** @description `session`, `key`, `local` or `anonymous`. */
            means: string;
            /** @description Name of the administrator, `key:ID`, `local` or `anonymous`. */
            name: string;
            /** @description `GET /login/oidc` logs in at an OpenID Connect provider. */
            oidc: boolean;
            /** @description What it may do; `admin` includes everything. */
            scopes: string[];
            /** @description Identifier of its session; null without one. */
            session: string | null;
            /** @description An administrator exists; if not, the setup link makes one. */
            set_up: boolean;
            /** @description Value of the header `x-thrum-token`, which changes by cookie need; null without a session. */
            token: string | null;
        };
        /** @description What makes messages slow, and what drops them. */
        Why: {
            /** @description What was asked about, in words. */
            about: string;
            drops: components["schemas"]["DropCauses"] | null;
            latency: components["schemas"]["LatencyCauses"] | null;
            /** @description What limits the answer, in words. */
            notes: string[];
            /**
             * Format: double
             * @description Seconds of the measurement.
             */
            seconds: number;
        };
        /** @description A cause. */
        WhyCause: {
            /** @description The figures. */
            evidence: {
                [key: string]: unknown;
            };
            /** @description Its name, which does not change between versions. */
            name: string;
            /** @description What to do about it. */
            remedy: string;
            /** @description What it is, with figures. */
            sentence: string;
            /**
             * Format: double
             * @description Its part of the time or of the dropped messages, from 0 to 1; the shares of all causes and
             *     of what is not the cause sum to 1.
             */
            share: number;
        };
        /** @description A question why. */
        WhyQuestion: {
            /**
             * @description About the messages of this client only.
             * @default null
             */
            client?: string | null;
            /**
             * Format: uint64
             * @description Seconds of the measurement, from 1 to 10; 10 if absent.
             * @default null
             */
            seconds?: number | null;
            /**
             * @description About the clients with a subscription that matches this topic or filter only.
             * @default null
             */
            topic?: string | null;
            /** @default null */
            what?: components["schemas"]["WhyWhat"] | null;
        };
        /**
         * @description What to look into.
         * @enum {string}
         */
        WhyWhat: "slow" | "drops";
        /** @description A will. */
        Will: {
            /**
             * Format: uint32
             * @description Seconds from the end of the connection until it is published.
             */
            delay_secs: number;
            /**
             * Format: uint64
             * @description Bytes of its payload.
             */
            payload_bytes: number;
            /**
             * Format: uint8
             * @description Quality of service.
             */
            qos: number;
            /** @description It will be retained. */
            retain: boolean;
            /** @description Topic. */
            topic: string;
        };
        /** @description A worker. */
        Worker: {
            /**
             * Format: uint64
             * @description Of these, those with a connection.
             */
            clients: number;
            /**
             * Format: double
             * @description CPU time since the start; its part of the uptime is how busy it was. Null if the system does
             *     not tell it.
             */
            cpu_secs: number | null;
            /**
             * @description `none`; `connections` if it leaves new connections in the backlog, `publishers` if it reads
             *     publishers less, too.
             */
            defers: string;
            /**
             * Format: uint64
             * @description Mail of other workers that waits.
             */
            mailbox_messages: number;
            /**
             * Format: uint64
             * @description PUBLISH packets received.
             */
            messages_received: number;
            /**
             * Format: uint64
             * @description PUBLISH packets sent.
             */
            messages_sent: number;
            /**
             * Format: uint64
             * @description Sessions that it owns.
             */
            sessions: number;
            /**
             * Format: uint64
             * @description Turns of its loop.
             */
            turns: number;
            /** @description Its number. */
            worker: number;
        };
    };
    responses: {
        /** @description The request is invalid. */
        Problem400: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The caller is unknown, or shows a wrong key, password or code. */
        Problem401: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The caller may not do this. */
        Problem403: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description What the request names is not there. */
        Problem404: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The request was not read and answered in time. */
        Problem408: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The state of the broker does not permit this. */
        Problem409: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The body is too long. */
        Problem413: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The body is not JSON. */
        Problem415: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The broker cannot take this over; nothing has changed. */
        Problem422: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description There are too many requests of this kind; `Retry-After` may say how long to wait. */
        Problem429: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The broker has made an error, which is in its log. */
        Problem500: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The OpenID Connect provider does not answer as it should. */
        Problem502: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The broker is stopping, or cannot store the change. */
        Problem503: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Workers of the broker have not answered in time. */
        Problem504: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description There is no room: on the disk, in the audit log, or within a limit. */
        Problem507: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
    };
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    test_login: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["LoginToTest"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LoginTest"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            507: components["responses"]["Problem507"];
        };
    };
    list_rules: {
        parameters: {
            query?: {
                /**
                 * @description Client identifier; the rules of a client that has a session are those of its session, unless
                 *     `user` is named.
                 */
                client_id?: string;
                /** @description User of the store. */
                user?: string;
                /** @description Address of the client. */
                address?: string;
                /** @description Listener of the client; `mqtt` if absent. */
                listener?: string;
                /** @description Rows of the page; 100 if absent. */
                limit?: number;
                /** @description `next` of the page before. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RulePage"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
        };
    };
    test_access: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AccessToTest"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AccessTest"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
        };
    };
    list_administrators: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AdministratorList"];
                };
            };
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
        };
    };
    add_administrator: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewAdministrator"];
            };
        };
        responses: {
            /** @description It was added. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            507: components["responses"]["Problem507"];
        };
    };
    remove_administrator: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the administrator */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It was done. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            507: components["responses"]["Problem507"];
        };
    };
    change_administrator: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the administrator */
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ChangeBody"];
            };
        };
        responses: {
            /** @description It was done. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            507: components["responses"]["Problem507"];
        };
    };
    reset_password: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the administrator */
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Password"];
            };
        };
        responses: {
            /** @description It was done. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            507: components["responses"]["Problem507"];
        };
    };
    list_alarms: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AlarmList"];
                };
            };
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
        };
    };
    list_past_alarms: {
        parameters: {
            query?: {
                /** @description Rows of the page; 100 if absent. */
                limit?: number;
                /** @description `next` of the page before. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AlarmHistory"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
        };
    };
    list_audit: {
        parameters: {
            query?: {
                /** @description Name of the caller. */
                who?: string;
                /** @description What was done; `client.*` is every action on clients. */
                action?: string;
                /** @description RFC 3339; older entries are left out. */
                since?: string;
                /** @description Rows of the page; 100 if absent. */
                limit?: number;
                /** @description `next` of the page before. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuditPage"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            507: components["responses"]["Problem507"];
        };
    };
    list_backups: {
        parameters: {
            query?: {
                /** @description Rows of the page; 100 if absent. */
                limit?: number;
                /** @description `next` of the page before. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BackupPage"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
        };
    };
    make_backup: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It has begun. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Backup"];
                };
            };
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
            507: components["responses"]["Problem507"];
        };
    };
    show_backup: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its name. */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Backup"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
        };
    };
    remove_backup: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its name. */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It was done. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
            507: components["responses"]["Problem507"];
        };
    };
    fetch_backup: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its name. */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The archive, as `thrum backup restore` takes it. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/x-tar": string;
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
            507: components["responses"]["Problem507"];
        };
    };
    list_bans: {
        parameters: {
            query?: {
                /** @description Bans of this client identifier. */
                client_id?: string;
                /** @description Bans of this user, and of its clients. */
                user?: string;
                /** @description Bans of networks that contain this address or network, or are in it. */
                address?: string;
                /** @description Bans that the broker made for a time, or the others. */
                temporary?: boolean;
                /** @description `subject` (the default), `since` or `until`. */
                sort?: string;
                /** @description From the highest to the lowest. */
                descending?: boolean;
                /** @description Rows of the page; 100 if absent. */
                limit?: number;
                /** @description `next` of the page before. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BanPage"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
        };
    };
    add_ban: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["BanToAdd"];
            };
        };
        responses: {
            /** @description It was added. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BanAdded"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
            507: components["responses"]["Problem507"];
        };
    };
    lift_ban: {
        parameters: {
            query?: {
                /** @description Client identifier. */
                client_id?: string;
                /** @description User. */
                user?: string;
                /** @description Address or network. */
                address?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It was done. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
            507: components["responses"]["Problem507"];
        };
    };
    list_clients: {
        parameters: {
            query?: {
                /** @description Terms that select clients, such as `user=alice queue>100 state=connected`. */
                filter?: string;
                /** @description Client identifier; `*` stands for any text. */
                client?: string;
                /** @description User; `*` stands for any text. */
                user?: string;
                /** @description Address or network. */
                address?: string;
                /** @description Name of the listener. */
                listener?: string;
                /** @description Protocol version: `3.1`, `3.1.1` or `5.0`. */
                version?: string;
                /** @description `connected`, `disconnected` or `persistent`. */
                state?: string;
                /** @description `state=connected` or `state=disconnected`. */
                connected?: boolean;
                /** @description `queue`, `slow`, `dropping`, `limited` or `near_limit`. */
                problem?: string;
                /** @description A topic or filter that the client has subscribed to. */
                subscribed?: string;
                /** @description Column, such as `queued_messages`; `client_id` if absent, `none` is the quickest. */
                sort?: string;
                /** @description The largest first. */
                descending?: boolean;
                /** @description Rows of the page; 100 if absent. */
                limit?: number;
                /** @description `next` of the page before. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ClientPage"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
        };
    };
    count_clients: {
        parameters: {
            query?: {
                /** @description Terms that select clients, such as `user=alice queue>100 state=connected`. */
                filter?: string;
                /** @description Client identifier; `*` stands for any text. */
                client?: string;
                /** @description User; `*` stands for any text. */
                user?: string;
                /** @description Address or network. */
                address?: string;
                /** @description Name of the listener. */
                listener?: string;
                /** @description Protocol version: `3.1`, `3.1.1` or `5.0`. */
                version?: string;
                /** @description `connected`, `disconnected` or `persistent`. */
                state?: string;
                /** @description `state=connected` or `state=disconnected`. */
                connected?: boolean;
                /** @description `queue`, `slow`, `dropping`, `limited` or `near_limit`. */
                problem?: string;
                /** @description A topic or filter that the client has subscribed to. */
                subscribed?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ClientFacets"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
        };
    };
    show_client: {
        parameters: {
            query?: {
                /** @description Milliseconds over which rates are measured. */
                sample_ms?: number;
            };
            header?: never;
            path: {
                /** @description Client identifier. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ClientDetail"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
        };
    };
    kick_client: {
        parameters: {
            query?: {
                /** @description The session ends too. */
                session?: boolean;
            };
            header?: never;
            path: {
                /** @description Client identifier. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Kicked"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
            507: components["responses"]["Problem507"];
        };
    };
    ban_client: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Client identifier. */
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ClientToBan"];
            };
        };
        responses: {
            /** @description It was added. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BanAdded"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
            507: components["responses"]["Problem507"];
        };
    };
    list_client_queue: {
        parameters: {
            query?: {
                /** @description Show payloads, which the caller must be allowed to read. */
                payload?: boolean;
                /** @description Rows of the page; 100 if absent. */
                limit?: number;
                /** @description `next` of the page before. */
                cursor?: string;
            };
            header?: never;
            path: {
                /** @description Client identifier. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HeldPage"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
        };
    };
    end_client_session: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Client identifier. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Kicked"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
            507: components["responses"]["Problem507"];
        };
    };
    list_client_subscriptions: {
        parameters: {
            query?: {
                /** @description Rows of the page; 100 if absent. */
                limit?: number;
                /** @description `next` of the page before. */
                cursor?: string;
            };
            header?: never;
            path: {
                /** @description Client identifier. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SubscriptionPage"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
        };
    };
    show_client_timeline: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Client identifier. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Timeline"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
        };
    };
    list_configuration: {
        parameters: {
            query?: {
                /** @description Only keys that begin so. */
                prefix?: string;
                /** @description Only keys of this origin. */
                origin?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Configuration"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
        };
    };
    apply_configuration: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ApplyRequest"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Applied"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            422: components["responses"]["Problem422"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
            507: components["responses"]["Problem507"];
        };
    };
    plan_configuration: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PlanRequest"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Plan"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            422: components["responses"]["Problem422"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
        };
    };
    reload_configuration: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Reloaded"];
                };
            };
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            422: components["responses"]["Problem422"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
            507: components["responses"]["Problem507"];
        };
    };
    roll_back_configuration: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RollbackRequest"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Applied"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            422: components["responses"]["Problem422"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
            507: components["responses"]["Problem507"];
        };
    };
    show_configuration_schema: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A JSON Schema. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": unknown;
                };
            };
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
        };
    };
    list_configuration_versions: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["VersionList"];
                };
            };
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
        };
    };
    show_configuration_key: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its name, such as `limits.max_packet`. */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ConfigurationKey"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
        };
    };
    list_drops: {
        parameters: {
            query?: {
                /** @description The reason, as in `$SYS/broker/publish/messages/dropped`. */
                reason?: string;
                /** @description Client identifier; `*` stands for any text. */
                client?: string;
                /** @description A filter that the topic matches. */
                topic?: string;
                /** @description Rows of the page; 100 if absent. */
                limit?: number;
                /** @description `next` of the page before. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DropPage"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
        };
    };
    explain_drops: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DropsToExplain"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DropsExplanation"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
        };
    };
    explain_publish: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PublishToExplain"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PublishExplanation"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
        };
    };
    explain_subscribe: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SubscribeToExplain"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SubscribeExplanation"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
        };
    };
    list_groups: {
        parameters: {
            query?: {
                /** @description Name of the group; `*` stands for any text. */
                group?: string;
                /** @description Its filter; `*` stands for any text. */
                filter?: string;
                /** @description Rows of the page; 100 if absent. */
                limit?: number;
                /** @description `next` of the page before. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GroupPage"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
        };
    };
    show_history: {
        parameters: {
            query?: {
                /** @description Names of figures, separated by commas; all if absent. */
                figure?: string;
                /** @description Only seconds after this time, in milliseconds of the Unix epoch. */
                since?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["History"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
        };
    };
    import_users: {
        parameters: {
            query: {
                /** @description `mosquitto` (a password file), `emqx-csv`, `emqx-json`, or `jsonl` (another store of thrum). */
                format: "mosquitto" | "emqx-csv" | "emqx-json" | "jsonl";
                /** @description Algorithm of EMQX's hashes; `sha256` if absent. */
                algorithm?: "sha256" | "sha512" | "bcrypt" | "pbkdf2-sha1" | "pbkdf2-sha256" | "pbkdf2-sha512";
                /** @description Position of the salt in EMQX: `suffix` (the default), `prefix` or `none`. */
                salt_position?: "prefix" | "suffix" | "none";
                /** @description Iterations of EMQX's PBKDF2; 4096 if absent. */
                iterations?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "text/plain": string | null;
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UsersImported"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
            507: components["responses"]["Problem507"];
        };
    };
    list_keys: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["KeyList"];
                };
            };
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
        };
    };
    add_key: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewApiKey"];
            };
        };
        responses: {
            /** @description It was added. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreatedKey"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            507: components["responses"]["Problem507"];
        };
    };
    remove_key: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Identifier of the key */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It was done. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            507: components["responses"]["Problem507"];
        };
    };
    list_listeners: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListenerList"];
                };
            };
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
        };
    };
    reload_certificates: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CertificateRenewal"];
                };
            };
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
            507: components["responses"]["Problem507"];
        };
    };
    show_listener: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its name in the configuration. */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListenerDetail"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
        };
    };
    start_listener: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Its name in the configuration. */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StoppedListener"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            422: components["responses"]["Problem422"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
            507: components["responses"]["Problem507"];
        };
    };
    stop_listener: {
        parameters: {
            query?: {
                /** @description Disconnect its clients, too. */
                disconnect?: boolean;
            };
            header?: never;
            path: {
                /** @description Its name in the configuration. */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StoppedListener"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            422: components["responses"]["Problem422"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
            507: components["responses"]["Problem507"];
        };
    };
    show_caller: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Whoami"];
                };
            };
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
        };
    };
    log_in: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["LoginBody"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Whoami"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            507: components["responses"]["Problem507"];
        };
    };
    log_out: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It was done. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
        };
    };
    begin_oidc: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The address of the provider is in `Location`. */
            303: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            502: components["responses"]["Problem502"];
            503: components["responses"]["Problem503"];
        };
    };
    finish_oidc: {
        parameters: {
            query?: {
                /** @description What the broker shows the provider. */
                code?: string;
                /** @description What the broker gave the browser. */
                state?: string;
                /** @description Why the provider refuses. */
                error?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page that leads to the first page. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/html": string;
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            502: components["responses"]["Problem502"];
            503: components["responses"]["Problem503"];
        };
    };
    change_password: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PasswordBody"];
            };
        };
        responses: {
            /** @description It was done. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            507: components["responses"]["Problem507"];
        };
    };
    list_own_sessions: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionList"];
                };
            };
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
        };
    };
    end_own_session: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Identifier of the session */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It was done. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            507: components["responses"]["Problem507"];
        };
    };
    set_up: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SetupBody"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Whoami"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            507: components["responses"]["Problem507"];
        };
    };
    begin_totp: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AgainBody"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TotpSecret"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            507: components["responses"]["Problem507"];
        };
    };
    confirm_totp: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CodeBody"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RecoveryCodes"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            507: components["responses"]["Problem507"];
        };
    };
    remove_totp: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AgainBody"];
            };
        };
        responses: {
            /** @description It was done. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            507: components["responses"]["Problem507"];
        };
    };
    list_logs: {
        parameters: {
            query?: {
                /** @description This level and more important ones. */
                level?: string;
                /** @description Targets that begin so. */
                target?: string;
                /**
                 * @description A part of the text, of a field or of the target, of at most 256 bytes; upper case and lower
                 *     case are the same.
                 */
                text?: string;
                /** @description Time of the first event. */
                since?: string;
                /** @description Events behind that number, the oldest first. */
                after?: number;
                /** @description `next` of the page before. */
                cursor?: string;
                /** @description Rows of the page; 100 if absent. */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The events. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LogPage"];
                    "text/event-stream": string;
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
        };
    };
    show_log_level: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LevelList"];
                };
            };
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
        };
    };
    set_log_level: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["LevelChange"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LevelList"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            422: components["responses"]["Problem422"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
            507: components["responses"]["Problem507"];
        };
    };
    show_metrics: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Metrics"];
                };
            };
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
        };
    };
    show_node: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Node"];
                };
            };
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
        };
    };
    show_openapi: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description An OpenAPI document. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": unknown;
                };
            };
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
        };
    };
    publish_message: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Message"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Published"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
            507: components["responses"]["Problem507"];
        };
    };
    publish_batch: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Batch"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PublishedBatch"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
            507: components["responses"]["Problem507"];
        };
    };
    list_retained: {
        parameters: {
            query?: {
                /** @description A topic filter; everything if absent. */
                filter?: string;
                /** @description Rows of the page; 100 if absent. */
                limit?: number;
                /** @description `next` of the page before. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RetainedPage"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
        };
    };
    remove_retained: {
        parameters: {
            query: {
                /** @description Filter that the topics match. */
                filter: string;
                /** @description Only count them. */
                dry_run?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RetainedRemoval"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
            507: components["responses"]["Problem507"];
        };
    };
    export_retained: {
        parameters: {
            query?: {
                /** @description A topic filter; everything if absent. */
                filter?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A `RetainedLine` in each line. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/jsonl": string;
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
        };
    };
    import_retained: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description A `RetainedLine` in each line. */
        requestBody?: {
            content: {
                "application/jsonl": string | null;
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Imported"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
            507: components["responses"]["Problem507"];
        };
    };
    show_retained: {
        parameters: {
            query: {
                /** @description Topic, with the mount point in front. */
                topic: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RetainedDetail"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
        };
    };
    list_roles: {
        parameters: {
            query?: {
                /** @description Rows of the page; 100 if absent. */
                limit?: number;
                /** @description `next` of the page before. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RoleList"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
        };
    };
    set_role: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the role. */
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RoleBody"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Role"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
            507: components["responses"]["Problem507"];
        };
    };
    remove_role: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the role. */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It was done. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
            507: components["responses"]["Problem507"];
        };
    };
    list_sessions: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionList"];
                };
            };
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
        };
    };
    end_session: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Identifier of the session */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It was done. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            507: components["responses"]["Problem507"];
        };
    };
    renew_setup_link: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SetupLink"];
                };
            };
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            507: components["responses"]["Problem507"];
        };
    };
    list_slow_clients: {
        parameters: {
            query?: {
                /** @description `queue`, `bytes`, `oldest` or `unacknowledged`; `queue` if absent. */
                by?: string;
                /** @description Terms that select clients, such as `user=alice queue>100`. */
                filter?: string;
                /** @description Rows of the page; 100 if absent. */
                limit?: number;
                /** @description `next` of the page before. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ClientPage"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
        };
    };
    show_status: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Status"];
                };
            };
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
        };
    };
    show_storage: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StorageState"];
                };
            };
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
        };
    };
    show_stream: {
        parameters: {
            query?: {
                /** @description Names of figures, separated by commas, or `all`. */
                figures?: string;
                /** @description A list of clients: the filter of `GET /clients`; empty for all. */
                clients?: string;
                /** @description The order of the clients, as of `GET /clients`. */
                clients_sort?: string;
                /** @description The other way round. */
                clients_descending?: boolean;
                /** @description Clients in the list; 20 if absent. */
                clients_limit?: number;
                /** @description Identifiers of clients to be shown in full. */
                client?: string[];
                /** @description Levels whose topics are listed, as `site/a/`; empty for the top. */
                topics?: string[];
                /** @description The order of the topics, as of `GET /topics`. */
                topics_sort?: string;
                /** @description The other way round. */
                topics_descending?: boolean;
                /** @description Topics of each level; 20 if absent, and 400 of all levels together. */
                topics_limit?: number;
                /** @description Topics to be shown in full. */
                topic?: string[];
                /** @description How often at most: `250ms`, `500ms`, `1s`, `2s`, `5s` or `10s`; `1s` if absent. */
                every?: string;
                /** @description The stream ends after so many seconds; never if absent. */
                seconds?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Events, until one side ends. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
        };
    };
    list_subscriptions: {
        parameters: {
            query?: {
                /** @description A topic filter; everything if absent. */
                filter?: string;
                /** @description Rows of the page; 100 if absent. */
                limit?: number;
                /** @description `next` of the page before. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SubscriptionPage"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
        };
    };
    list_topic_metrics: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TopicMetricList"];
                };
            };
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
        };
    };
    add_topic_metric: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewTopicMetric"];
            };
        };
        responses: {
            /** @description It was added. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TopicMetric"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
            507: components["responses"]["Problem507"];
        };
    };
    remove_topic_metric: {
        parameters: {
            query: {
                /** @description The filter. */
                filter: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It was done. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
            507: components["responses"]["Problem507"];
        };
    };
    list_topics: {
        parameters: {
            query?: {
                /** @description The level whose children are listed, as `site/a` or `site/a/`; all topics if absent. */
                under?: string;
                /** @description `name`, `messages`, `rate`, `bytes` or `last`. */
                sort?: string;
                /** @description The greatest, newest or last one first. */
                descending?: boolean;
                /** @description Rows of the page; 100 if absent. */
                limit?: number;
                /** @description `next` of the page before. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TopicPage"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
        };
    };
    show_topic: {
        parameters: {
            query: {
                /** @description The topic, with the mount point in front. */
                topic: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TopicInFull"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
        };
    };
    trace_packets: {
        parameters: {
            query?: {
                /** @description All packets of the client with this identifier. */
                client?: string;
                /** @description PUBLISH packets of all clients whose topic matches this filter. */
                topic?: string;
                /** @description All packets of clients at this address or in this network. */
                address?: string;
                /** @description With payloads. */
                payloads?: boolean;
                /**
                 * @description The trace ends after so many seconds: up to 10, and 5 if absent; as a stream of events up to
                 *     3,600, and 60 if absent.
                 */
                seconds?: number;
                /**
                 * @description The trace ends after so many packets: up to 10,000, as a stream of events up to 1,000,000,
                 *     and 1,000 if absent.
                 */
                packets?: number;
                /** @description Form of the answer; `jsonl` if absent. */
                format?: "jsonl" | "pcapng";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The packets, as lines of JSON or as a capture. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/jsonl": string;
                    "application/x-pcapng": string;
                    "text/event-stream": string;
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
            507: components["responses"]["Problem507"];
        };
    };
    list_user_groups: {
        parameters: {
            query?: {
                /** @description Rows of the page; 100 if absent. */
                limit?: number;
                /** @description `next` of the page before. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UserGroupList"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
        };
    };
    set_user_group: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the group. */
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["GroupBody"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UserGroup"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
            507: components["responses"]["Problem507"];
        };
    };
    remove_user_group: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the group. */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It was done. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
            507: components["responses"]["Problem507"];
        };
    };
    list_users: {
        parameters: {
            query?: {
                /** @description A part of the name. */
                name?: string;
                /** @description Users with this role, without those that have it by a group. */
                role?: string;
                /** @description Members of this group. */
                group?: string;
                /** @description Disabled users, or the others. */
                disabled?: boolean;
                /** @description Superusers, or the others. */
                superuser?: boolean;
                /** @description Rows of the page; 100 if absent. */
                limit?: number;
                /** @description `next` of the page before. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UserPage"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
        };
    };
    add_user: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewUser"];
            };
        };
        responses: {
            /** @description It was added. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["User"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
            507: components["responses"]["Problem507"];
        };
    };
    show_user: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the user. */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["User"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
        };
    };
    remove_user: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the user. */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UserChanged"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
            507: components["responses"]["Problem507"];
        };
    };
    change_user: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the user. */
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["UserChange"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UserChanged"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
            507: components["responses"]["Problem507"];
        };
    };
    set_user_password: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Name of the user. */
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["UserPassword"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UserChanged"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            409: components["responses"]["Problem409"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
            507: components["responses"]["Problem507"];
        };
    };
    ask_why: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WhyQuestion"];
            };
        };
        responses: {
            /** @description The answer. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Why"];
                };
            };
            400: components["responses"]["Problem400"];
            401: components["responses"]["Problem401"];
            403: components["responses"]["Problem403"];
            404: components["responses"]["Problem404"];
            408: components["responses"]["Problem408"];
            413: components["responses"]["Problem413"];
            415: components["responses"]["Problem415"];
            429: components["responses"]["Problem429"];
            500: components["responses"]["Problem500"];
            503: components["responses"]["Problem503"];
            504: components["responses"]["Problem504"];
        };
    };
}
