import { type ClaimTemplate, parseClaimPath, parseClaimTemplate } from '../../core/claims.ts'
import { isForwardedFact, isReservedField } from '../../core/header-fields.ts'
import { isLoopback, parseHttpUrl } from '../addresses.ts'
import { hintForClaims, hintForClaimPath } from '../document/claim-hints.ts'
import type { NamedClaim } from '../document/formats.ts'
import type { Setting } from '../document/report.ts'
import { readSecret } from '../document/secrets.ts'
import { isTemplate } from '../document/spellings.ts'
import type { HeaderConfig, HeaderSource } from '../model/header.ts'
import type { AuthorizeWithConfig, SignedIdentityConfig } from '../model/upstream.ts'
import type { HeaderSettings, UpstreamSettings } from '../settings.ts'
import { type ShortNames, withLongName } from './claim-names.ts'

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

/** The settings that say where a value comes from. A header has one of them. */
type SourceSetting = (typeof ofPerson | typeof ofEverybody)[number]
const ofPerson = ['claim', 'template', 'first_of', 'basic', 'bearer'] as const
const ofEverybody = ['value', 'env', 'file', 'request'] as const

function readHeader(name: string, written: HeaderSettings, at: Setting, context: HeaderContext): HeaderConfig[] {
  const values = { ...written, first_of: written.firstOf }
  const setting = [...ofPerson, ...ofEverybody].find((source) => values[source] !== undefined)
  if (setting !== undefined && !maySet(name.toLowerCase(), setting)) {
    at.errorAtKey('is a header that only the gateway sets', hintForReserved(name.toLowerCase()))
    return []
  }
  if (setting === undefined) return []
  const source = readSource(setting, written, at, context)
  if (source === undefined) return []
  const { json, join, encode, maxBytes, tooLong, required } = written
  return [
    {
      name,
      source,
      ...readChanges(written, at),
      ...(json === true && { json }),
      ...{ join, encode, maxBytes, tooLong, required },
    },
  ]
}

function maySet(name: string, setting: SourceSetting): boolean {
  return !isReservedField(name) || (ofEverybody.some((each) => each === setting) && isForwardedFact(name))
}

function hintForReserved(name: string): string {
  const todo = `remove it, or ${isForwardedFact(name) ? 'write a fact about the request, such as { request: client_address }, or ' : ''}`
  return `${todo}use another name, such as X-Remote-User`
}

function readSource(
  setting: SourceSetting,
  written: HeaderSettings,
  at: Setting,
  context: HeaderContext,
): HeaderSource | undefined {
  const { claims } = context
  const textAt = at.below(setting)
  switch (setting) {
    case 'claim':
    case 'template': {
      const template = readTemplate(written[setting] ?? '', setting, textAt, context)
      return template.length === 0 ? undefined : claimSource(template)
    }
    case 'first_of': {
      const firstOf = (written.firstOf ?? []).map((path) => withLongName(path, claims))
      return firstOf.length === 0 ? undefined : { kind: 'first_of', firstOf }
    }
    case 'value':
      return { kind: 'constant', value: readConstant(written.value ?? '', textAt), isSecret: false }
    case 'env':
    case 'file': {
      const value = readSecret(written, at)
      return value === undefined ? undefined : { kind: 'constant', value, isSecret: true }
    }
    case 'request':
      return written.request === undefined ? undefined : { kind: 'request', request: written.request }
    case 'basic': {
      const { user, password } = written.basic ?? {}
      // The schema reports a missing user.
      if (user === undefined) return undefined
      const template = readTemplate(user, user.includes('{') ? 'template' : 'claim', textAt.below('user'), context)
      return template.length === 0 || password === undefined ? undefined : { kind: 'basic', user: template, password }
    }
    case 'bearer':
      if (written.bearer === 'exchanged_token') return { kind: 'exchanged' }
      return written.bearer === undefined ? undefined : { kind: 'bearer', bearer: written.bearer }
  }
}

function readChanges(written: HeaderSettings, at: Setting): Pick<HeaderConfig, 'changes'> {
  const { after, before, case: letters, map } = written
  if ([after, before, letters, map].every((change) => change === undefined)) return {}
  for (const [value, text] of Object.entries(map ?? {})) readConstant(text, at.below('map', value))
  return {
    changes: {
      ...(after !== undefined && { after }),
      ...(before !== undefined && { before }),
      ...(letters !== undefined && { case: letters }),
      ...(map !== undefined && { map: new Map(Object.entries(map)) }),
    },
  }
}

/** The template of a text that is a claim path or a template; empty when it is invalid. */
function readTemplate(
  text: string,
  setting: 'claim' | 'template',
  at: Setting,
  { claims }: HeaderContext,
): ClaimTemplate {
  const parse = (): ClaimTemplate => (setting === 'claim' ? [parseClaimPath(text)] : parseHeaderTemplate(text))
  const template = at.parse(text, parse, setting === 'claim' ? hintForClaimPath(text) : hintForClaims(text)) ?? []
  if (setting === 'template' && /\$\{(?!\{)/.test(text) && !isTemplate(text))
    at.warning('also sends the "$" before the claim', hintForClaims(text))
  return template.map((part) => (typeof part === 'string' ? part : withLongName(part, claims)))
}

/** A template that consists of one claim is that claim. */
function claimSource(template: ClaimTemplate): HeaderSource {
  const [only] = template
  return template.length === 1 && only !== undefined && typeof only !== 'string'
    ? { kind: 'claim', path: only }
    : { kind: 'template', template }
}

function parseHeaderTemplate(text: string): ClaimTemplate {
  requireOneLine(text)
  const template = parseClaimTemplate(text)
  if (template.every((part) => typeof part === 'string'))
    throw new SyntaxError('has no claim in braces, such as {email}; write a constant as { value: … }')
  return template
}

function readConstant(text: string, at: Setting): string {
  const read = () => {
    requireOneLine(text)
    // Recipients remove white space around a value (RFC 9110 §5.5).
    if (text !== text.trim()) throw new SyntaxError('must not begin or end with white space')
    if (/^\{[\w.]+\}$/.test(text)) at.warning('is sent as it is', 'write template to send the claim')
    if (/^(?:sub|email|groups|(?:preferred_user|given_|family_)name)$/.test(text))
      at.warning('is sent as it is', `write claim: ${text} to send the claim`)
    return text
  }
  return at.parse(text, read) ?? ''
}

function requireOneLine(text: string): void {
  if (/[\p{Cc}\u2028\u2029]/u.test(text)) throw new SyntaxError('must not contain line breaks or control characters')
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
