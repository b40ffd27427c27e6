import type { PageName } from './page-names.ts'

/** The properties of an error code. */
interface ErrorRow {
  /** RFC 9110 §15, RFC 6585. */
  readonly status: number
  /** The public text. Only this is translated. */
  readonly text: string
  /** The page that shows it. */
  readonly page: Exclude<PageName, 'signed-out' | 'sign-out'>
  /** What happened, for the operator. */
  readonly means: string
  /** What the operator can do, in the imperative. */
  readonly todo: string
}

/** The table of errors. Statuses, pages and the advice of `explain` are derived from it. */
const table = {
  ERR_REQUEST_MALFORMED: {
    status: 400,
    text: 'The request could not be understood.',
    page: 'bad-request',
    means: 'the request is ambiguous, so the gateway did not forward it',
    todo: 'check the client: browsers do not send such requests; an attacker or a faulty proxy does',
  },
  ERR_REQUEST_TARGET: {
    status: 400,
    text: 'The address of this page is malformed.',
    page: 'bad-request',
    means:
      'the gateway and the application could read the path differently, so the gateway did not forward the request',
    todo: 'change the link; the reason names the ambiguous part',
  },
  ERR_MCP_FIELDS: {
    status: 400,
    text: 'The header fields of this MCP request do not say what it does.',
    page: 'bad-request',
    means:
      'a rule is for certain tools or methods of MCP, and the request does not say clearly in Mcp-Method and Mcp-Name what it calls',
    todo: 'use a client of MCP revision 2026-07-28; the reason names the field',
  },
  ERR_SESSION_AMBIGUOUS: {
    status: 400,
    text: 'Your browser sent the cookies of two sessions. Please load the page again.',
    page: 'bad-request',
    means: 'the browser has session cookies of two people, and another host of the domain has set one of them',
    todo: 'nothing for a single request: the response deletes the other cookie; if it repeats, find the host that sets a cookie of this name, because it may be attacked',
  },
  ERR_FORWARD_AUTH: {
    status: 400,
    text: 'The proxy in front of this application is not configured correctly.',
    page: 'bad-request',
    means: 'a proxy asked about a request (forward_auth) without saying clearly which one, or is not trusted',
    todo: 'the reason names the field; compare the configuration of the proxy with docs/forward-auth.md, and its address with trusted_proxies',
  },
  ERR_METHOD_NOT_ALLOWED: {
    status: 405,
    text: 'This method is not available here.',
    page: 'bad-request',
    means: 'this endpoint of the gateway, or this rule with respond, does not allow this method',
    todo: 'see the table of endpoints in docs/endpoints.md; a redirect with 307 or 308 allows all methods',
  },
  ERR_METHOD_UNKNOWN: {
    status: 501,
    text: 'This method is not supported.',
    page: 'bad-request',
    means: 'the gateway does not forward TRACE and CONNECT',
    todo: 'nothing',
  },
  ERR_REQUEST_TIMEOUT: {
    status: 408,
    text: 'The request did not arrive in time.',
    page: 'bad-request',
    means: 'the client took too long to send its request',
    todo: 'nothing for a single client; if uploads over slow connections fail, raise limits.body_idle_timeout',
  },
  ERR_PAYLOAD_TOO_LARGE: {
    status: 413,
    text: 'The request is too large.',
    page: 'bad-request',
    means: 'a form for an endpoint of the gateway was larger than 16 KiB',
    todo: 'check the client; requests to applications have no such limit',
  },
  ERR_MEDIA_TYPE: {
    status: 415,
    text: 'Requests of this type are not accepted here.',
    page: 'bad-request',
    means: 'an endpoint of the gateway received content that is not a form',
    todo: 'check the client: a Logout Token is sent as application/x-www-form-urlencoded',
  },
  ERR_EXPECTATION: {
    status: 417,
    text: 'The request requires something that is not supported here.',
    page: 'bad-request',
    means: 'the client sent an Expect field other than 100-continue',
    todo: 'remove the field from the requests of the client',
  },
  ERR_HEADERS_TOO_LARGE: {
    status: 431,
    text: 'The header fields of the request are too many or too large.',
    page: 'bad-request',
    means: 'the request had more header fields than limits.header_count, or was larger than limits.header_size',
    todo: 'raise the limit if legitimate clients send that much; the usual cause is too many cookies',
  },
  ERR_TOO_MANY_REQUESTS: {
    status: 429,
    text: 'Too many requests came from your network.',
    page: 'too-many-requests',
    means: 'a client sent more requests than limits.per_client allows',
    todo: 'if many people share this address, check whether a proxy in front of the gateway is missing in trusted_proxies; otherwise raise the limit',
  },
  ERR_UNAUTHENTICATED: {
    status: 401,
    text: 'Please sign in.',
    page: 'sign-in-required',
    means: 'nobody was signed in, or the session had ended, and the request was not a page load that can be redirected',
    todo: 'nothing if the person had signed out; a script that gets 401 has to send the person to sign_in',
  },
  ERR_STEP_UP: {
    status: 401,
    text: 'Please sign in again for this page.',
    page: 'sign-in-required',
    means:
      'a person was signed in, but not as strongly or as recently as step_up of the rule requires, and the request was not a page load that can be redirected',
    todo: 'nothing: a script that gets 401 has to send the person to sign_in',
  },
  ERR_TOKEN_INVALID: {
    status: 401,
    text: 'The access token is not accepted.',
    page: 'bad-request',
    means: 'a request had an access token that the gateway does not accept, or a malformed one',
    todo: 'nothing if the token had expired; otherwise the reason names the failed check: compare the token with audience and types of access_tokens',
  },
  ERR_ACCOUNT_INVALID: {
    status: 401,
    text: 'The name or secret of the service account is wrong.',
    page: 'bad-request',
    means: 'a request had the name and secret of a service account, and the gateway does not accept them',
    todo: 'compare the name with the file of service_accounts; a new secret needs a new line: gatehouse service-account NAME',
  },
  ERR_KEY_INVALID: {
    status: 401,
    text: 'The key is not accepted here, or has ended.',
    page: 'bad-request',
    means:
      'a request had a key of a person that has ended, was never made, or is for another upstream, or the rule accepts no keys',
    todo: 'see the reason: where a key has ended, let the person make a new one on the page with the sessions; where the rule accepts no keys, write keys: true in it',
  },
  ERR_KEY_NOT_MADE: {
    status: 403,
    text: 'No key was made. You have to sign in as the same person, and the number of your keys is limited.',
    page: 'sign-in-failed',
    means:
      'a person may not make a key: the sign-in was that of another person, or keys.require or keys.per_person of the upstream does not allow it',
    todo: 'let the person end a key first, or sign in as the person of the session; the reason says which of them it is',
  },
  ERR_CERTIFICATE_INVALID: {
    status: 403,
    text: 'The client certificate is not accepted.',
    page: 'bad-request',
    means: 'a request had a client certificate that the gateway does not accept',
    todo: 'compare the certificate with listen.tls.client_ca_file: the reason names the failed check',
  },
  ERR_TOKEN_SCOPE: {
    status: 403,
    text: 'The access token does not allow this request.',
    page: 'forbidden',
    means: 'an access token is valid, but lacks a scope that access_tokens of the upstream or of the rule needs',
    todo: 'let the client request the scope, and allow it for this client at the provider',
  },
  ERR_SECURITY_EVENT_INVALID: {
    status: 400,
    text: 'The security event is not valid.',
    page: 'bad-request',
    means: 'the gateway rejected a security event of the provider (signals), or a request that was none',
    todo: 'the reason names the claim; compare issuer, audience and algorithm with provider.signals',
  },
  ERR_REVOCATION_INVALID: {
    status: 400,
    text: 'The request to end sessions is not valid.',
    page: 'bad-request',
    means: 'the gateway rejected a request for Global Token Revocation (Universal Logout)',
    todo: 'the reason names what is wrong; compare issuer, aud and algorithm with provider.global_token_revocation',
  },
  ERR_FORBIDDEN: {
    status: 403,
    text: 'You do not have access to this page.',
    page: 'forbidden',
    means: 'the claims of the person, or of the program, do not satisfy the rule',
    todo: 'if the person should have access, change the groups or other claims of the person at the provider (effective at the next sign-in or refresh), or change the rule; a program has the claims of its token, service account or certificate',
  },
  ERR_CLAIM_ABSENT: {
    status: 403,
    text: 'You do not have access to this page.',
    page: 'forbidden',
    means: 'the person, or the program, lacks a claim that the rule requires',
    todo: 'compare the name of the claim with claim_names of gatehouse sessions show; if it is missing there, request its scope (scopes of the provider), or add it to UserInfo at the provider (a mapper); if only the ID Token has it, name it in id_token_claims of the provider; people then have to sign in again',
  },
  ERR_CLAIM_WITHHELD: {
    status: 403,
    text: 'The sign-in service did not say whether you have access to this page.',
    page: 'forbidden',
    means:
      'the provider has withheld the claim that decides: it named the claim without its value, because the person is in too many groups (an overage), or because the value is at another place (_claim_names of OpenID Connect Core §5.6.2); or an API of claims_from could not be read',
    todo: 'with claims_from, see provider.claims_api_failed in the log; without it, let the provider send fewer values: only the groups that are assigned to this application, or roles instead of groups (docs/providers/entra-id.md); people then have to sign in again',
  },
  ERR_DEVICE_BINDING: {
    status: 403,
    text: 'This page needs a session that is bound to your device.',
    page: 'forbidden',
    means: 'device_binding is required here, and the browser has not bound the session to a key of its device',
    todo: 'use a browser with Device Bound Session Credentials (Chrome on a computer with a TPM), and sign in again; or set device_binding to when_supported here',
  },
  ERR_DEVICE_PROOF: {
    status: 403,
    text: 'The proof of this device was not accepted.',
    page: 'forbidden',
    means: 'a browser has sent no valid proof that it has the key of a session',
    todo: 'nothing for a single request: the browser signs in again; the reason is in the log',
  },
  ERR_CROSS_SITE: {
    status: 403,
    text: 'This request came from another site and was not carried out.',
    page: 'bad-request',
    means: 'a page of another origin made the request, which would have acted in the name of the signed-in person',
    todo: 'if that page should be allowed, add its origin to trusted_origins of the upstream',
  },
  ERR_NO_ROUTE: {
    status: 404,
    text: 'There is nothing at this address.',
    page: 'not-found',
    means: 'no upstream serves this host and path, or the gateway has no such endpoint',
    todo: 'compare hosts and path of the upstreams with the request; a proxy in front of the gateway may change Host',
  },
  ERR_WRONG_HOST: {
    status: 421,
    text: 'You cannot sign in at this address.',
    page: 'wrong-address',
    means: 'a browser opened the gateway at a host where nobody can sign in, because the sign-in ends at external_url',
    todo: 'redirect that host to external_url, or add an upstream for it with its own external_url; if the host is correct, a proxy in front of the gateway changes Host: let it forward Host, or add it to trusted_proxies and let it set X-Forwarded-Host',
  },
  ERR_SIGN_IN_EXPIRED: {
    status: 400,
    text: 'Your sign-in could not be completed. Please start again.',
    page: 'sign-in-failed',
    means: 'a browser returned from the provider too late, twice, or with a state of another gateway',
    todo: 'nothing for a single case; if it happens to many people, read the reasons: replicas may have different session.keys',
  },
  ERR_SIGN_IN_COOKIE: {
    status: 400,
    text: 'Your browser did not send the cookie of this sign-in. Allow cookies for this site, and start again in the same browser.',
    page: 'sign-in-failed',
    means: 'a browser returned from the provider without the cookie of the sign-in',
    todo: 'nothing for a single case; if it happens to many people, read the reasons: external_url may differ from the address bar of the browser, or a proxy removes cookies',
  },
  ERR_SIGN_IN_ISSUER: {
    status: 400,
    text: 'This link is for another sign-in service.',
    page: 'sign-in-failed',
    means: 'a link requested a sign-in at a provider other than the configured one (login initiation)',
    todo: 'correct the link at the provider or portal: its iss has to be exactly provider.issuer',
  },
  ERR_SIGN_IN_REFUSED: {
    status: 403,
    text: 'The sign-in service rejected the sign-in.',
    page: 'sign-in-failed',
    means: 'the provider returned the browser with an error',
    todo: 'read the reason: it contains the error of the provider; check the log of the provider',
  },
  ERR_SIGN_IN_DECLINED: {
    status: 403,
    text: 'The sign-in was stopped before its end, or your account may not sign in here.',
    page: 'sign-in-failed',
    means: 'the person stopped the sign-in at the provider, or may not use this client (access_denied)',
    todo: 'nothing for a single case; if it happens to many people, check at the provider who may use this client',
  },
  ERR_STEP_UP_UNMET: {
    status: 403,
    text: 'This page needs a stronger sign-in than yours.',
    page: 'sign-in-failed',
    means: 'the provider did not authenticate the person as step_up of the rule requires',
    todo: 'compare acr_values of step_up with the acr that the provider sends (gatehouse sessions show), and configure the provider to honor acr_values for this client',
  },
  ERR_SIGN_IN_ENDED: {
    status: 403,
    text: 'Your session was ended while you were signing in. Please start again.',
    page: 'sign-in-failed',
    means:
      'a Logout Token, another ending of the sessions of this person or e-mail address, or a later sign-in of the person ended it during the sign-in; or session_expiry of the ID Token has passed',
    todo: 'nothing: the person can start again',
  },
  ERR_TOO_MANY_SESSIONS: {
    status: 403,
    text: 'You are signed in in too many browsers.',
    page: 'sign-in-failed',
    means: 'the person has as many sessions as session.max_per_person allows, and it says when_exceeded: refuse',
    todo: 'nothing: the page lists the other sessions, and the person ends one of them',
  },
  ERR_SIGN_IN_RESPONSE: {
    status: 502,
    text: 'The sign-in service sent an invalid response.',
    page: 'sign-in-failed',
    means: 'the provider sent a response that must not be accepted',
    todo: 'run gatehouse doctor; the usual reasons are a wrong client secret, issuer, algorithm or clock',
  },
  ERR_PROVIDER_UNAVAILABLE: {
    status: 503,
    text: 'The sign-in service cannot be reached.',
    page: 'unavailable',
    means: 'the provider could not be reached, or did not respond in time',
    todo: 'run gatehouse doctor on the machine of the gateway; signed-in people are still served',
  },
  ERR_DECISION_UNAVAILABLE: {
    status: 503,
    text: 'It cannot be decided at the moment whether you have access to this page.',
    page: 'unavailable',
    means: 'the policy decision point of the upstream (authorize_with) has made no decision',
    todo: 'the reason says what it responded; check the policy decision point, and authorize_with of the upstream',
  },
  ERR_STORE_UNAVAILABLE: {
    status: 503,
    text: 'Sign-in and sessions are not available right now.',
    page: 'unavailable',
    means: 'Redis could not be reached, so the gateway could not tell whether the session still exists',
    todo: 'run gatehouse doctor on the machine of the gateway, and check Redis',
  },
  ERR_COOKIES_FULL: {
    status: 502,
    text: 'The application has set more cookies than can be kept.',
    page: 'unavailable',
    means: 'an application set more session cookies than a session keeps, so its response was dropped',
    todo: 'find out why the application sets so many cookies, or take those that need not be kept out of session_cookies',
  },
  ERR_LOGOUT_REQUEST: {
    status: 400,
    text: 'The request does not name the session that has ended.',
    page: 'bad-request',
    means: 'a front-channel logout did not name the session that has ended, or came from another issuer',
    todo: 'let the provider send iss and sid (frontchannel_logout_session_required), or use back-channel logout',
  },
  ERR_LOGOUT_TOKEN_MISSING: {
    status: 400,
    text: 'logout_token is missing.',
    page: 'bad-request',
    means: 'a client posted to backchannel-logout without a logout_token',
    todo: 'check the client: it is not a provider',
  },
  ERR_LOGOUT_TOKEN_INVALID: {
    status: 400,
    text: 'logout_token is invalid.',
    page: 'bad-request',
    means: 'a Logout Token was rejected and ended no session',
    todo: 'if it came from the provider, the reason names the failed check; compare issuer, client_id, algorithm and clocks',
  },
  ERR_TOKEN_EXCHANGE: {
    status: 502,
    text: 'The identity service issues no token for this application.',
    page: 'unavailable',
    means: 'the provider refused to exchange the access token for one that is meant for the upstream',
    todo: 'compare token_exchange of the upstream with the settings of this client at the provider: token_exchange.failed in the log has the error and a hint',
  },
  ERR_MAINTENANCE: {
    status: 503,
    text: 'This application is under maintenance.',
    page: 'unavailable',
    means: 'a rule with maintenance matches, and the person does not meet its unless',
    todo: 'remove the rule when the maintenance is over; people whose claims meet unless get through after they sign in at /.gatehouse/sign-in',
  },
  ERR_OVERLOADED: {
    status: 503,
    text: 'The service is overloaded at the moment.',
    page: 'unavailable',
    means: 'the gateway holds too much for clients: requests that do not end, or responses that they do not read',
    todo: 'see gatehouse_buffered_bytes; lower limits.per_client.connections, or give the container more memory',
  },
  ERR_UPSTREAM_UNREACHABLE: {
    status: 502,
    text: 'The application cannot be reached.',
    page: 'unavailable',
    means: 'the gateway could not connect to the application',
    todo: 'check that the application runs, and that upstreams.*.url is its address as seen from the gateway',
  },
  ERR_UPSTREAM_BUSY: {
    status: 503,
    text: 'The application is busy.',
    page: 'unavailable',
    means: 'no connection to the application was free, or too many streams were open',
    todo: 'find the requests that take long; raise max_connections or max_streams, as upstream.busy in the log says',
  },
  ERR_UPSTREAM_RESPONSE: {
    status: 502,
    text: 'The application sent an invalid response.',
    page: 'unavailable',
    means: 'the response of the application was malformed or incomplete',
    todo: 'check the log of the application at that time',
  },
  ERR_UPSTREAM_TIMEOUT: {
    status: 504,
    text: 'The application did not respond in time.',
    page: 'unavailable',
    means: 'the application did not respond in time',
    todo: 'check the application; if it needs more time, raise response_timeout of the upstream',
  },
  ERR_LOOP: {
    status: 508,
    text: 'The request was sent in a loop.',
    page: 'unavailable',
    means: 'this gateway had already sent the request to this upstream: two proxies forward to each other',
    todo: 'check upstreams.*.url: it has to be the application, not a proxy that forwards to this gateway',
  },
  ERR_INTERNAL: {
    status: 500,
    text: 'Something went wrong.',
    page: 'unavailable',
    means: 'a fault in Gatehouse',
    todo: 'please report it, with the log lines of the request',
  },
} as const satisfies Readonly<Record<string, ErrorRow>>

export type ErrorCode = keyof typeof table

/** All codes, in the order of the table. */
export const errorCodes = Object.keys(table) as readonly ErrorCode[]

/** The row of an error code. */
export function errorRow(code: ErrorCode): ErrorRow {
  return table[code]
}

/** Whether a text, such as the `code` of a line in a log, is an error code. */
export function isErrorCode(text: string): text is ErrorCode {
  return Object.hasOwn(table, text)
}
