import type { Note } from './translation.ts'

/**
 * Why an option of oauth2-proxy has no setting here: it is not needed, or there is no such thing.
 */
export const withoutTranslation: ReadonlyMap<string, { readonly level: Note['level']; readonly why: string }> = new Map(
  [
    ...options('unneeded', {
      approval_prompt: 'provider.authorization_params takes prompt, where one is wanted',
      'code_challenge_method force_code_challenge_method': 'PKCE with S256 is always used',
      cookie_csrf_expire: 'a sign-in that was begun is good for a time of its own',
      cookie_csrf_per_request: 'sign-ins in several tabs do not disturb each other',
      cookie_csrf_per_request_limit: 'old attempts are forgotten by themselves',
      cookie_csrf_samesite: 'the cookie of an attempt is Lax, so that it comes back from the provider',
      encode_state: 'state is opaque',
      insecure_oidc_skip_nonce: 'the nonce is always checked',
      'skip_provider_button provider_display_name': 'there is no page before the provider’s',
      'oidc_jwks_url login_url redeem_url profile_url': 'it is discovered from the issuer',
      validate_url: 'tokens are verified here, and refreshed',
      use_system_trust_store: 'an authority of your own is trusted beside the usual ones',
      backend_logout_url: 'signing out goes to the provider’s end_session_endpoint',
      relative_redirect_url: 'the redirect URI follows from external_url',
      display_htpasswd_form: 'people sign in at the provider only',
      bearer_token_login_fallback: 'bearer tokens are not looked at',
      'cookie_secret cookie_secret_file':
        'session.keys takes its place, with another key: sessions are not taken over, people sign in once more',
      cookie_httponly: 'no script can read the cookie',
      cookie_refresh: 'tokens are refreshed before they expire (session.refresh_before)',
      session_cookie_minimal: 'the cookie holds no tokens',
      redis_connection_idle_timeout: 'connections are kept alive',
      skip_auth_strip_headers: 'identity headers of clients are always removed',
      flush_interval: 'answers are passed on as they come',
      proxy_websockets: 'WebSockets are passed on',
      disable_keep_alives: 'connections are kept alive, and closed after four seconds without use',
      allow_query_semicolons: 'the query is passed on byte for byte',
      force_json_errors: 'pages get pages, everything else application/problem+json',
      real_client_ip_header: 'X-Forwarded-For or Forwarded of trusted_proxies is read',
      tls_cipher_suites: 'those of Node.js are used',
      tls_min_version: 'TLS 1.2 is the oldest',
      'ping_path ping_user_agent ready_path gcp_healthchecks': 'admin.listen serves /live and /ready',
      auth_logging: 'sign-ins are audit events in the log',
      'auth_logging_format request_logging_format standard_logging_format': 'the log is JSON',
      standard_logging: 'log.level chooses what is written',
      errors_to_info_log: 'the log goes to standard output',
      silence_ping_logging: 'probes are not in the access log',
      request_id_header: 'X-Request-Id of trusted_proxies is taken',
    }),
    ...options('lost', {
      insecure_oidc_skip_issuer_verification: 'the issuer is always checked: several tenants need a gateway each',
      oidc_audience_claims: 'the audience is the claim aud, and has to be client_id',
      oidc_extra_audiences: 'the audience has to be client_id',
      oidc_public_key_files: 'keys are read from the provider, so that they can be changed there',
      skip_oidc_discovery: 'the provider has to have a discovery document',
      skip_claims_from_profile_url: 'claims are read from userinfo',
      ssl_insecure_skip_verify: 'certificates are always checked: name the authority with provider.ca_file',
      'jwt_key jwt_key_file pubjwk_url entra_id_federated_token_auth': 'the client authenticates with a secret',
      'google_admin_email google_service_account_json google_use_application_default_credentials google_target_principal github_token azure_graph_group_field':
        'groups are those of a claim: no other service is asked for them',
      user_id_claim: 'X-Forwarded-User is sub; upstreams.NAME.headers can name any claim',
      'http_store_base_url http_store_api_key': 'sessions are in memory or in Redis',
      whitelist_domains: 'after signing in people come back to the origin that they came from, and no other',
      'htpasswd_file htpasswd_user_groups': 'people sign in at the provider only',
      'skip_jwt_bearer_tokens extra_jwt_issuers': 'a request without a session gets 401, whatever bearer token it has',
      trusted_ips: 'an address lets nobody in: open the paths with access: public, where they may be open to all',
      cookie_domains: 'the cookie is for one host (__Host-): an upstream with an external_url of its own has its own',
      cookie_path: 'the cookie is for the whole host (__Host-)',
      redis_insecure_skip_tls_verify: 'certificates are always checked: name the authority with ca_file',
      basic_auth_password: 'a password that is the same for everybody is not passed on; the identity headers are',
      'pass_access_token pass_authorization_header': 'tokens stay in the gateway: the application gets claims',
      set_authorization_header: 'tokens stay in the gateway, and it does not answer auth_request of another proxy',
      set_basic_auth: 'it does not answer auth_request of another proxy',
      set_xauthrequest: 'it does not answer auth_request of another proxy: it stands before the application itself',
      signature_key: 'requests are not signed',
      ssl_upstream_insecure_skip_verify:
        'certificates are always checked: name the authority with ca_file of the upstream',
      force_https: 'redirects from http are the business of the proxy where TLS ends',
      'metrics_secure_address metrics_tls_cert_file metrics_tls_key_file':
        'admin.listen is plain http, for this machine or a network of its own',
      exclude_logging_paths: 'either each request has a line in the log, or none (log.access)',
      logging_filename: 'the log goes to standard output: what runs the gateway writes it to a file',
      'logging_compress logging_max_age logging_max_backups logging_max_size': 'the log goes to standard output',
      logging_local_time: 'times in the log are UTC',
      'banner footer': 'pages have a name, a logo, colours and whom to turn to (pages)',
      custom_sign_in_logo: 'write it as pages.logo: a PNG, SVG or WebP image',
      custom_templates_dir: 'templates are written otherwise: see docs/pages.md',
      show_debug_on_error: 'visitors get the id of their request; gatehouse explain --log says the rest',
    }),
  ],
)

function options(level: Note['level'], reasons: Readonly<Record<string, string>>) {
  return Object.entries(reasons).flatMap(([names, why]) =>
    names.split(' ').map((name) => [name, { level, why }] as const),
  )
}
