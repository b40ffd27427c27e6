import { type ClaimTemplate, parseClaimTemplate } from '../../core/claims.ts'
import { parsePathPattern } from '../../core/patterns.ts'
import type { Setting } from '../document/report.ts'
import { readSecret } from '../document/secrets.ts'
import type { ApplicationSignInConfig } from '../model/upstream.ts'
import type { ApplicationSignInSettings } from '../settings.ts'
import { type ShortNames, templateWithLongNames, withLongName } from './claim-names.ts'
import type { HeaderContext } from './headers.ts'

/** The sign-in of an application. Returns `undefined` without one, and when it is incomplete. */
export function readApplicationSignIn(
  settings: ApplicationSignInSettings | undefined,
  at: Setting,
  { claims, path }: HeaderContext & { readonly path: string },
): ApplicationSignInConfig | undefined {
  if (settings === undefined) return undefined
  const { preset: _, basic = false, page, action, fields, json, ...others } = settings
  const kind = basic ? 'basic' : json === undefined ? 'form' : 'json'
  if (kind === 'form' && fields === undefined && at.isValid)
    at.error('does not say how people sign in', 'write preset, fields, json or basic')
  const values = Object.entries(fields ?? json ?? {}).map(
    ([name, text]) => [name, readValue(text, at.below(json === undefined ? 'fields' : 'json', name), claims)] as const,
  )
  const written = values.flatMap(([, value]) => value)
  if (values.length > 0 && !written.some((part) => part[0] === 'password' && typeof part !== 'string'))
    at.below(json === undefined ? 'fields' : 'json').error('has no password', 'write "{password}" as one of the values')
  const [pageTarget, actionTarget] = (['page', 'action'] as const).map((name) =>
    at.below(name).parse(settings[name], checkedTarget),
  )
  return {
    ...others,
    kind,
    values,
    page: pageTarget,
    // Basic needs no address of its own: the application asks everywhere.
    action: actionTarget ?? pageTarget ?? path,
    username: readUsername(settings, at.below('username'), claims),
    password: readPassword(settings, at.below('password'), claims),
  }
}

/** A value that is sent. The names `username` and `password` are no claims. */
function readValue(text: string, at: Setting, claims: ShortNames): ClaimTemplate {
  const { username: _, password: __, ...names } = claims
  const template = at.parse(text, (written) => (written === '' ? [''] : parseClaimTemplate(written)))
  return templateWithLongNames(template ?? [], names)
}

function readUsername(
  { username, password }: ApplicationSignInSettings,
  at: Setting,
  claims: ShortNames,
): ApplicationSignInConfig['username'] {
  if (username.ask === true && password.ask !== true)
    at.error('is asked for together with the password only', 'write password: { ask: true }')
  if (username.ask === true) return 'ask'
  if (username.value !== undefined) return [username.value]
  return templateWithLongNames(username.template ?? (username.claim === undefined ? [] : [username.claim]), claims)
}

function readPassword(
  { password: { claim, env, file } }: ApplicationSignInSettings,
  at: Setting,
  claims: ShortNames,
): ApplicationSignInConfig['password'] {
  if (claim !== undefined) return [withLongName(claim, claims)]
  if (env === undefined && file === undefined) return 'ask'
  return [readSecret({ env, file }, at) ?? '']
}

/**
 * A path and query that a request of the gateway is for, as clients use them.
 * @throws {SyntaxError} names what is wrong
 */
export function checkedTarget(target: string): string {
  const [, path = '', query = ''] = /^([^?]*)(.*)$/s.exec(target) ?? []
  if (parsePathPattern(path).text.includes('*')) throw new SyntaxError('must not contain "*": it is one address')
  if (/[^\x21-\x7e]|#/.test(query)) throw new SyntaxError('must have a percent-encoded query, without "#"')
  return target
}
