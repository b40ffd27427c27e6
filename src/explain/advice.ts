import type { ErrorCode } from '../core/errors.ts'
import type { CutReason } from '../proxy/live-streams.ts'

/** What an error code means to whoever runs the gateway, and what they can do. */
export interface Advice {
  readonly means: string
  readonly todo: string
}

const restart = 'nothing, once; if it happens to many people, look at the reason of each'

/** For each error that a request can end with. */
const adviceOnError: Readonly<Record<ErrorCode, Advice>> = {
  ERR_REQUEST_MALFORMED: {
    means: 'the request could be read in two ways, so it was not passed on',
    todo: 'look at what sent it: a browser does not write such requests, an attacker or an odd proxy does',
  },
  ERR_REQUEST_TARGET: {
    means: 'the path could mean two things to the gateway and to the application, so it was not passed on',
    todo: 'change the link; the reason says what is ambiguous in it',
  },
  ERR_METHOD_NOT_ALLOWED: {
    means: 'this URL of the gateway does not take this method',
    todo: 'see the table of the gateway’s own URLs in README.md',
  },
  ERR_METHOD_UNKNOWN: { means: 'TRACE and CONNECT are not for a gateway to pass on', todo: 'nothing' },
  ERR_REQUEST_TIMEOUT: {
    means: 'the client took too long to send its request',
    todo: 'nothing for a single client; if uploads on slow lines are cut, raise limits.body_idle_timeout',
  },
  ERR_PAYLOAD_TOO_LARGE: {
    means: 'a form for one of the gateway’s own URLs was larger than 16 KiB',
    todo: 'look at what sent it; requests to applications have no such limit',
  },
  ERR_MEDIA_TYPE: {
    means: 'one of the gateway’s own URLs was sent something that is no form',
    todo: 'look at what sent it: a logout token comes as application/x-www-form-urlencoded',
  },
  ERR_EXPECTATION: {
    means: 'the client sent an Expect other than 100-continue',
    todo: 'remove the field from the client',
  },
  ERR_HEADERS_TOO_LARGE: {
    means: 'the request had more header lines than limits.header_count',
    todo: 'raise it if honest clients send as many',
  },
  ERR_TOO_MANY_REQUESTS: {
    means: 'a client asked for more than limits allow',
    todo: 'if many people share its address, a proxy before the gateway may be missing in trusted_proxies; else raise the limit',
  },
  ERR_UNAUTHENTICATED: {
    means: 'nobody was signed in, or the session had ended, and it was no page load that could be redirected',
    todo: 'nothing if the person had signed out; a script gets 401 and has to send the person to sign_in',
  },
  ERR_FORBIDDEN: {
    means: 'somebody was signed in, but their claims do not meet the rule',
    todo: 'if they should: put them into the group at the provider (it shows at their next sign-in or refresh), or change the rule',
  },
  ERR_CROSS_SITE: {
    means: 'a page of another origin made the request, and it would have been done in the person’s name',
    todo: 'if that page is to be allowed, name its origin in trusted_origins of the upstream',
  },
  ERR_NO_ROUTE: {
    means: 'no upstream serves this host and path, or it is a URL of the gateway that there is not',
    todo: 'compare hosts and path of the upstreams with what was asked for; a proxy before the gateway may change Host',
  },
  ERR_WRONG_HOST: {
    means: 'a browser opened the gateway at a host where it cannot sign in, because the sign-in ends at external_url',
    todo: 'redirect that host to external_url, or give it an upstream with its own external_url; if the host is right, a proxy before the gateway changes Host: have it pass Host on, or name it in trusted_proxies and have it set X-Forwarded-Host',
  },
  ERR_SIGN_IN_EXPIRED: {
    means: 'a browser came back from the provider too late, twice, or without the cookie that it had left with',
    todo: `${restart}: an external_url that is not the one in the browser’s address bar, or a proxy that drops cookies, does it to everybody`,
  },
  ERR_SIGN_IN_REFUSED: {
    means: 'the provider sent the browser back without signing the person in',
    todo: 'look at the provider’s log: the person may not use this client, or declined',
  },
  ERR_SIGN_IN_ENDED: {
    means: 'a logout token for this person or session arrived while they were signing in',
    todo: 'nothing: they can start again',
  },
  ERR_SIGN_IN_ANSWER: {
    means: 'the provider gave an answer that must not be accepted',
    todo: 'run gatehouse doctor: a wrong client secret, issuer or algorithm, or a clock that is off, are the usual reasons',
  },
  ERR_PROVIDER_UNAVAILABLE: {
    means: 'the provider could not be reached, or not in time',
    todo: 'run gatehouse doctor where the gateway runs; whoever is signed in is served meanwhile',
  },
  ERR_STORE_UNAVAILABLE: {
    means: 'Redis could not be reached, so that nobody could say whether the session still is one',
    todo: 'run gatehouse doctor where the gateway runs, and look at Redis',
  },
  ERR_SIGN_IN_ISSUER: {
    means: 'a link asked for a sign-in at another provider than the configured one (login initiation)',
    todo: 'correct the link where the provider or portal has it: its iss has to be provider.issuer, letter by letter',
  },
  ERR_LOGOUT_REQUEST: {
    means: 'a front-channel logout did not say which session is over, or came from another issuer',
    todo: 'have the provider send iss and sid (frontchannel_logout_session_required), or use back-channel logout',
  },
  ERR_LOGOUT_TOKEN_MISSING: {
    means: 'somebody posted to backchannel-logout without a logout_token',
    todo: 'look at what sent it: it is not how a provider does',
  },
  ERR_LOGOUT_TOKEN_INVALID: {
    means: 'a logout token was refused, and ended nothing',
    todo: 'if it came from the provider: the reason says which check failed; compare issuer, client_id, algorithm and clocks',
  },
  ERR_OVERLOADED: {
    means: 'clients have left more of their responses unread than the memory allows',
    todo: 'see gatehouse_buffered_bytes; bound connections per client, or give the container more memory',
  },
  ERR_UPSTREAM_UNREACHABLE: {
    means: 'the application could not be connected to',
    todo: 'see whether it runs, and whether upstreams.*.url is its address as seen from the gateway',
  },
  ERR_UPSTREAM_BUSY: {
    means: 'no connection to the application was free for the request, or too many streams are open',
    todo: 'see which requests take long; raise max_connections or max_streams, as the line upstream.busy says',
  },
  ERR_UPSTREAM_ANSWER: {
    means: 'the application’s answer was malformed or broke off',
    todo: 'look at the application’s log at that time',
  },
  ERR_UPSTREAM_TIMEOUT: {
    means: 'the application did not answer in time',
    todo: 'look at the application; if it may take as long, raise response_timeout of the upstream',
  },
  ERR_LOOP: {
    means: 'the request had been sent to this upstream by this gateway before: two proxies lead to each other',
    todo: 'look at where upstreams.*.url leads: it has to be the application, and not a proxy that leads back here',
  },
  ERR_INTERNAL: { means: 'a fault in Gatehouse', todo: 'please report it, with the lines of the log about it' },
}

/** For each reason why the gateway breaks off what is under way. */
const adviceOnCut: Readonly<Record<CutReason, Advice>> = {
  session_ended: {
    means: 'the session ended while the answer, upload or WebSocket was under way',
    todo: 'nothing: that is what an ending is for',
  },
  going_away: { means: 'the gateway was stopped', todo: 'nothing: clients connect again' },
}

/** The reasons of ERR_FORBIDDEN that are about the provider's claims, and not about what the person may do. */
const absentClaim = /\bthe claim (?:is absent|for the required header \S+ is missing)$/

const adviceOnAbsentClaim: Advice = {
  means: 'somebody was signed in, but the provider did not send the claim that is needed',
  todo: 'compare the name of the claim with claim_names of gatehouse sessions show; if it is not there, have the provider send it: ask for its scope (provider.scopes), or add it to userinfo at the provider (a mapper); if only the ID Token has it, name it in provider.id_token_claims; people then sign in again',
}

/**
 * What is known of a code that stands in a log.
 * @param reason why, as the line with the code says it
 */
export function adviceOn(code: string, reason = ''): Advice | undefined {
  if (code === 'ERR_FORBIDDEN' && absentClaim.test(reason)) return adviceOnAbsentClaim
  if (Object.hasOwn(adviceOnError, code)) return adviceOnError[code as ErrorCode]
  return Object.hasOwn(adviceOnCut, code) ? adviceOnCut[code as CutReason] : undefined
}
