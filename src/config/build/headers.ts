import { type ClaimTemplate } from '../../core/claims.ts'
import { isForwardedFact, isReservedField } from '../../core/header-fields.ts'
import { isLoopback, parseHttpUrl } from '../addresses.ts'
import type { NamedClaim } from '../document/formats.ts'
import type { Setting } from '../document/report.ts'
import { readSecret } from '../document/secrets.ts'
import type { HeaderConfig, HeaderSource } from '../model/header.ts'
import type { AuthorizeWithConfig, SignedIdentityConfig } from '../model/upstream.ts'
import type { HeaderSettings, UpstreamSettings } from '../settings.ts'
import { type ShortNames, templateWithLongNames, withLongName } from './claim-names.ts'

/** What headers need from the rest of the file. */
export interface HeaderContext {
  /** Short name → name of the claim. */
  readonly claims: ShortNames
}

export function readHeaders(
  written: UpstreamSettings['headers'],
  at: Setting,
  context: HeaderContext,
): readonly HeaderConfig[] {
  return Object.entries(written).flatMap(([name, value]) => readHeader(name, value, at.below(name), context))
}

function readHeader(name: string, written: HeaderSettings, at: Setting, { claims }: HeaderContext): HeaderConfig[] {
  if (!maySet(name.toLowerCase(), written, at)) {
    at.errorAtKey('is a header that only the gateway sets', hintForReserved(name.toLowerCase()))
    return []
  }
  const source = readSource(written, at, claims)
  if (source === undefined) return []
  const { json, join, encode, maxBytes, tooLong, required } = written
  return [
    {
      name,
      source,
      ...changesOf(written),
      ...(json === true && { json }),
      ...{ join, encode, maxBytes, tooLong, required },
    },
  ]
}

/** A header about the request may have a value that is the same for everybody. */
function maySet(name: string, written: HeaderSettings, at: Setting): boolean {
  const isOfEverybody = (['value', 'env', 'file', 'request'] as const).some(
    (source) => written[source] !== undefined || at.below(source).isSet,
  )
  return !isReservedField(name) || (isOfEverybody && isForwardedFact(name))
}

function hintForReserved(name: string): string {
  const todo = `remove it, or ${isForwardedFact(name) ? 'write a fact about the request, such as { request: client_address }, or ' : ''}`
  return `${todo}use another name, such as X-Remote-User`
}

function readSource(written: HeaderSettings, at: Setting, names: ShortNames): HeaderSource | undefined {
  const { claim, template, firstOf = [], value, env, file, request, basic, bearer } = written
  if (claim !== undefined) return { kind: 'claim', path: withLongName(claim, names) }
  if (template !== undefined) return claimSource(templateWithLongNames(template, names))
  if (firstOf.length > 0) return { kind: 'first_of', firstOf: firstOf.map((path) => withLongName(path, names)) }
  if (value !== undefined) return { kind: 'constant', value, isSecret: false }
  if (request !== undefined) return { kind: 'request', request }
  if (bearer !== undefined) return bearer === 'exchanged_token' ? { kind: 'exchanged' } : { kind: 'bearer', bearer }
  if (basic?.user !== undefined && basic.password !== undefined)
    return { kind: 'basic', user: templateWithLongNames(basic.user, names), password: basic.password }
  const secret = readSecret({ env, file }, at)
  return secret === undefined ? undefined : { kind: 'constant', value: secret, isSecret: true }
}

function changesOf({ after, before, case: letters, map }: HeaderSettings): Pick<HeaderConfig, 'changes'> {
  if ([after, before, letters, map].every((change) => change === undefined)) return {}
  return {
    changes: {
      ...(after !== undefined && { after }),
      ...(before !== undefined && { before }),
      ...(letters !== undefined && { case: letters }),
      ...(map !== undefined && { map: new Map(Object.entries(map)) }),
    },
  }
}

/** A template that consists of one claim is that claim. */
function claimSource(template: ClaimTemplate): HeaderSource {
  const [only] = template
  return template.length === 1 && only !== undefined && typeof only !== 'string'
    ? { kind: 'claim', path: only }
    : { kind: 'template', template }
}

const decisionPoint = 'https://pdp.example.com/access/v1/evaluation'

/** The policy decision point of an upstream. Returns `undefined` without one. */
export function readAuthorizeWith(
  settings: UpstreamSettings['authorizeWith'],
  at: Setting,
  { claims: names }: HeaderContext,
): AuthorizeWithConfig | undefined {
  if (settings === undefined) return undefined
  const { url = '', claims } = settings
  const address = at.below('url').parse(settings.url, (text) => parseHttpUrl(text, decisionPoint))
  if (address && address.protocol === 'http:' && !isLoopback(address.hostname))
    at.below('url').warning('is not https: an attacker who can change the traffic decides who has access', 'use https')
  return {
    ...settings,
    url,
    claims: claims.map((claim) => withLongPath(claim, names)),
  }
}

/** `upstream` is the name of the upstream. Returns `undefined` when it gets no signed identity. */
export function readSignedIdentity(
  settings: UpstreamSettings['signedIdentity'],
  upstream: string,
  { claims }: HeaderContext,
): SignedIdentityConfig | undefined {
  if (settings === false) return undefined
  return {
    ...settings,
    audience: settings.audience ?? upstream,
    claims: settings.claims.map((claim) => withLongPath(claim, claims)),
  }
}

function withLongPath({ name, path }: NamedClaim, names: ShortNames): NamedClaim {
  return { name, path: withLongName(path, names) }
}
