import { withoutTranslationOf } from '../common/notes.ts'

/** The reason why an endpoint of the provider is not needed. */
export const discovered = 'the gateway discovers it from the issuer'

/** Why an option of oauth2-proxy has no setting here: it is not needed, or not supported. */
export const withoutTranslation = withoutTranslationOf({
  unneeded: {
    approval_prompt: 'set prompt in provider.authorization_params if you need it',
    'code_challenge_method force_code_challenge_method': 'PKCE with S256 is always used',
    cookie_csrf_expire: 'a started sign-in has a time limit of its own',
    cookie_csrf_per_request: 'sign-ins in several tabs are independent',
    cookie_csrf_per_request_limit: 'old sign-ins expire',
    cookie_csrf_samesite:
      'the sign-in cookie is SameSite=Lax, so that browsers send it on the return from the provider',
    encode_state: 'state is opaque',
    insecure_oidc_skip_nonce: 'the nonce is always checked',
    'skip_provider_button provider_display_name': 'the gateway redirects to the provider at once, without a page',
    'oidc_jwks_url redeem_url profile_url': discovered,
    validate_url: 'the gateway verifies and refreshes tokens itself',
    backend_logout_url: 'signing out goes to the provider’s end_session_endpoint',
    relative_redirect_url: 'the redirect URI follows from external_url',
    display_htpasswd_form: 'people sign in at the provider only',
    bearer_token_login_fallback: 'an access token that is not accepted gets 401, and no sign-in',
    'cookie_secret cookie_secret_file':
      'session.keys replaces it, with another key; sessions are not migrated, so people sign in once more',
    cookie_httponly: 'the cookie is always HttpOnly',
    cookie_refresh: 'tokens are refreshed before they expire (session.refresh_before)',
    session_cookie_minimal: 'the cookie holds no tokens',
    redis_connection_idle_timeout: 'connections are kept alive',
    skip_auth_strip_headers: 'identity headers of clients are always removed',
    flush_interval: 'responses are streamed',
    proxy_websockets: 'WebSockets are proxied',
    disable_keep_alives: 'connections are kept alive, and closed after four seconds without use',
    allow_query_semicolons: 'the query is forwarded byte for byte',
    force_json_errors: 'page loads get an HTML page, other requests application/problem+json',
    real_client_ip_header: 'the gateway reads X-Forwarded-For or Forwarded of trusted_proxies',
    tls_cipher_suites: 'the gateway uses the cipher suites of Node.js',
    'ping_path ping_user_agent ready_path gcp_healthchecks': 'admin.listen serves /live and /ready',
    auth_logging: 'sign-ins are audit events in the log',
    'auth_logging_format request_logging_format standard_logging_format': 'the log is JSON',
    standard_logging: 'log.level selects the events',
    errors_to_info_log: 'the log goes to standard output',
    silence_ping_logging: 'probes are not in the access log',
    request_id_header: 'the gateway keeps X-Request-Id of trusted_proxies',
  },
  lost: {
    insecure_oidc_skip_issuer_verification: 'the issuer is always checked; each tenant needs its own gateway',
    oidc_audience_claims: 'the audience is the claim aud and must be client_id',
    oidc_extra_audiences: 'the audience must be client_id',
    oidc_public_key_files: 'the gateway reads the keys from the provider, so that the provider can rotate them',
    skip_oidc_discovery: 'write the endpoints of the provider below provider.metadata',
    tls_min_version: 'the minimum is TLS 1.2; for TLS 1.3 only, let another program terminate TLS',
    ssl_insecure_skip_verify: 'certificates are always verified; name the CA in provider.ca_file',
    'jwt_key jwt_key_file pubjwk_url entra_id_federated_token_auth': 'the client authenticates with a secret',
    'google_admin_email google_service_account_json google_use_application_default_credentials google_target_principal github_token azure_graph_group_field':
      'groups come from a claim, not from another service',
    'http_store_base_url http_store_api_key': 'sessions are stored in memory or in Redis',
    'htpasswd_file htpasswd_user_groups':
      'people sign in at the provider only; programs can have service_accounts: see docs/apis.md',
    skip_jwt_bearer_tokens:
      'name the audience in access_tokens of the upstream, and write access_tokens: true in the rules of the API: see docs/apis.md; ID Tokens are not accepted',
    extra_jwt_issuers:
      'each issuer of access tokens is a provider of its own below providers: see docs/apis.md and docs/several-providers.md',
    trusted_ips:
      'write a rule with these networks, access: public and the paths that need no sign-in from there, as the first rule',
    cookie_path: 'the cookie is for all paths',
    redis_insecure_skip_tls_verify: 'certificates are always verified; name the CA in ca_file',
    pass_access_token:
      'the gateway does not send X-Forwarded-Access-Token; if the application accepts a bearer token, write headers: { Authorization: { bearer: access_token } }',
    'set_authorization_header set_basic_auth':
      'another proxy that asks (forward_auth) gets the headers of upstreams.NAME.headers',
    set_xauthrequest:
      'for auth_request of another proxy, write forward_auth: true in place of url: see docs/forward-auth.md',
    signature_key: 'the gateway does not sign whole requests; signed_identity of an upstream signs who the person is',
    ssl_upstream_insecure_skip_verify: 'certificates are always verified; name the CA in ca_file of the upstream',
    force_https: 'let the proxy that terminates TLS redirect from http',
    'metrics_secure_address metrics_tls_cert_file metrics_tls_key_file':
      'admin.listen is plain http, for this machine or a separate network',
    exclude_logging_paths: 'log.access turns access lines on or off for all requests',
    logging_filename: 'the log goes to standard output; redirect it to a file if you need one',
    'logging_compress logging_max_age logging_max_backups logging_max_size': 'the log goes to standard output',
    logging_local_time: 'times in the log are UTC',
    'banner footer': 'set the name, logo, colors and support contact in pages',
    custom_sign_in_logo: 'set pages.logo to a PNG, SVG or WebP image',
    custom_templates_dir: 'templates have another format; see docs/pages.md',
    show_debug_on_error: 'error pages show the request ID; gatehouse explain --log shows the details',
  },
})
