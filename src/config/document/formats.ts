import { type ClaimPath, parseClaimPath } from '../../core/claims.ts'
import { LinearPattern } from '../../core/linear-pattern.ts'
import { parseNamePattern, parsePathPattern } from '../../core/patterns.ts'
import {
  parseAddress,
  parseCookieDomain,
  parseHost,
  parseHttpUrl,
  parseOrigin,
  parseSubnet,
  parseUpstreamOrigin,
  parseUpstreamPath,
} from '../addresses.ts'
import { expandColor } from '../colors.ts'
import {
  hintForDomain,
  hintForNetwork,
  parseClientAddress,
  parseEmailDomain,
  parseFrameAncestor,
  parseHostName,
  parseNameServer,
  parseNoProxy,
  parseService,
  parseTarget,
  parseTime,
  parseUri,
  parseWholeHost,
  secure,
} from './address-formats.ts'
import { hintForClaimPath, hintForClaims } from './claim-hints.ts'
import { parseHeaderTemplate, parseHeaderValue } from './header-formats.ts'
import { hintForFolder, hintForPath } from './path-hints.ts'
import { readAuthorities, readKeyPair } from './pem-files.ts'
import { parseRedisServer, parseRedisUrl, redisUrlOf } from './redis-urls.ts'
import type { Setting } from './report.ts'
import { readAuthorizationValue, readSecret, type SecretPlace } from './secrets.ts'

/** How a setting of a format is read. */
export interface Format {
  /**
   * @param at reports further faults
   * @param example a valid text
   * @throws {SyntaxError} names what is wrong
   */
  readonly read: (written: never, at: Setting, example: string) => unknown
  /** What to write in place of an invalid text. */
  readonly hint?: (text: string) => string | undefined
}

/** What the settings mean that have a `format` in the schema. */
export const formats = {
  authorities: { read: readAuthorities },
  authorization: { read: readAuthorizationValue },
  claim_path: { read: (text: string) => parseClaimPath(text), hint: hintForClaimPath },
  claim_template: { read: parseHeaderTemplate, hint: hintForClaims },
  claim_text: {
    read: (text: string, at: Setting) => (text.includes('{') ? parseHeaderTemplate(text, at) : [parseClaimPath(text)]),
    hint: (text) => (text.includes('{') ? hintForClaims(text) : hintForClaimPath(text)),
  },
  client_address: { read: parseClientAddress },
  // The client is registered later, so its secret need not exist yet.
  client_secret: {
    read: (secret: SecretPlace, at: Setting) => (at.report.isUnregistered ? '' : readSecret(secret, at)),
  },
  color: { read: expandColor },
  cookie_domain: { read: parseCookieDomain },
  email_domain: { read: parseEmailDomain, hint: hintForDomain },
  folder: { read: parseUpstreamPath, hint: hintForFolder },
  frame_ancestor: { read: parseFrameAncestor },
  header_value: { read: parseHeaderValue },
  host: { read: parseHost },
  host_name: { read: parseHostName },
  identity_claim: { read: namedClaim(['iss', 'sub', 'aud', 'exp', 'nbf', 'iat', 'jti']), hint: hintForClaims },
  key_pair: { read: readKeyPair },
  linear_pattern: { read: (text: string) => new LinearPattern(text) },
  local_address: { read: (text: string | number) => parseAddress(text, '127.0.0.1') },
  name_pattern: { read: parseNamePattern },
  name_server: { read: parseNameServer },
  network: { read: (text: string) => ({ ...parseSubnet(text), text }), hint: hintForNetwork },
  no_proxy: { read: (text: string) => parseNoProxy(text) },
  origin: { read: (text: string, _: Setting, example: string) => parseOrigin(text, example).origin },
  origin_url: { read: (text: string, _: Setting, example: string) => parseOrigin(text, example) },
  path_pattern: { read: parsePathPattern, hint: hintForPath },
  point_in_time: { read: parseTime },
  policy_claim: { read: namedClaim(['iss']), hint: hintForClaims },
  redis_server: { read: (text: string, _: Setting, example: string) => parseRedisServer(text, example) },
  redis_url: {
    read: parseRedisUrl,
    hint: (text) => (text.includes('://') || redisUrlOf(text) === undefined ? undefined : `write ${redisUrlOf(text)}`),
  },
  secret: { read: readSecret },
  secure_origin: { read: (text: string, _: Setting, example: string) => secure(parseOrigin(text, example)).origin },
  secure_url: { read: (text: string, _: Setting, example: string) => secure(parseHttpUrl(text, example)) && text },
  service_name: { read: parseService },
  session_key: { read: readSessionKey, hint: () => 'create a key with openssl rand -base64 32' },
  target: { read: parseTarget },
  uri: { read: parseUri },
  whole_host: { read: parseWholeHost },
  wildcard_origin: { read: (text: string) => parseUpstreamOrigin(text) },
} satisfies Readonly<Record<string, Format>>

/** The values of the formats. */
export type Formats = {
  readonly [Name in keyof typeof formats]: NonNullable<ReturnType<(typeof formats)[Name]['read']>>
}

/** A claim that is sent in a JSON object. */
export interface NamedClaim {
  /**
   * The name under which it is sent: that of the claim, or a longer path as in the configuration.
   */
  readonly name: string
  readonly path: ClaimPath
}

/** A claim that is sent in a JSON object, in which the gateway itself writes `own`. */
function namedClaim(own: readonly string[]): (text: string) => NamedClaim {
  return (text) => {
    const path = parseClaimPath(text)
    // The quotes around a name with special characters are no part of it.
    const name = path.length === 1 ? String(path[0]) : text
    if (own.includes(name)) throw new SyntaxError(`is a claim that the gateway writes itself: remove ${name}`)
    return { name, path }
  }
}

const keyBytes = 32

function readSessionKey(secret: SecretPlace, at: Setting): Buffer | undefined {
  const text = readSecret(secret, at)
  if (text === undefined) return undefined
  const key = /^([\da-f]{2})+$/i.test(text)
    ? Buffer.from(text, 'hex')
    : /^([\w-]+|[A-Za-z\d+/]+)={0,2}$/.test(text)
      ? Buffer.from(text, 'base64')
      : undefined
  if (key?.length === keyBytes) return key
  const found = key === undefined ? 'it has another format' : `it has ${key.length}`
  throw new SyntaxError(`must be ${keyBytes} bytes in base64, base64url or hex; ${found}`)
}
