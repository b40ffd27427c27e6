import { statSync } from 'node:fs'
import { extname, resolve } from 'node:path'
import { isHopByHop } from '../../core/header-fields.ts'
import { ownMember } from '../../core/json.ts'
import type { PathPattern } from '../../core/patterns.ts'
import { parseHttpUrl } from '../addresses.ts'
import { explainFileError } from '../document/files.ts'
import type { Setting } from '../document/report.ts'
import { namedFile, readNamedFile } from '../document/secrets.ts'
import {
  type FilesConfig,
  type FixedResponseConfig,
  type MaintenanceConfig,
  type RedirectConfig,
  redirectStatuses,
  type RespondConfig,
} from '../model/respond.ts'
import type { RuleRespondSettings } from '../settings.ts'
import { standInUrl } from './build-context.ts'
import type { ShortNames } from './claim-names.ts'
import { readRequirements } from './requirements.ts'

/**
 * Reads what the gateway itself responds with.
 * @param ruleAt finds the settings of the rule
 * @param path the path of the rule
 */
export function readRespond(
  settings: RuleRespondSettings,
  ruleAt: Setting,
  path: PathPattern,
  claims: ShortNames,
): RespondConfig | undefined {
  const at = ruleAt.below('respond')
  // What the other settings mean depends on the one that is invalid.
  if (['to', 'files', 'maintenance'].some((name) => at.report.isInvalid(at.below(name).pointer))) return undefined
  const kind = kindOf(settings)
  if (kind === 'maintenance') return readMaintenance(settings.maintenance, ruleAt, claims)
  reportFields(settings, at.below('headers'))
  if (kind === 'files') return readFiles(settings, at.below('files'), path)
  return kind === 'redirect' ? readRedirect(settings, at, path) : readFixed(settings, at)
}

function kindOf({ to, files, maintenance }: RuleRespondSettings): RespondConfig['kind'] {
  if (maintenance !== undefined) return 'maintenance'
  if (files !== undefined) return 'files'
  return to === undefined ? 'fixed' : 'redirect'
}

/** Fields that the gateway writes itself, and how a reader gets what the field is for. */
const gatewayFields: ReadonlyMap<string, string | undefined> = new Map([
  ['cache-control', 'use the setting max_age'],
  ['location', 'use the setting to'],
  ['set-cookie', undefined],
  ['content-length', undefined],
  ['content-encoding', undefined],
  ['content-range', undefined],
  ['date', undefined],
  ['vary', undefined],
])

function reportFields({ headers }: RuleRespondSettings, at: Setting): void {
  for (const name of Object.keys(headers)) {
    const lowerCase = name.toLowerCase()
    if (gatewayFields.has(lowerCase) || isHopByHop(lowerCase))
      at.below(name).errorAtKey('is a header that only the gateway sets', gatewayFields.get(lowerCase))
  }
}

function readRedirect(settings: RuleRespondSettings, at: Setting, path: PathPattern): RedirectConfig | undefined {
  const { status: wanted = 302, headers, maxAgeMs } = settings
  const status = redirectStatuses.find((each) => each === wanted)
  if (status === undefined) at.below('status').error('must be 301, 302, 303, 307 or 308, because to redirects')
  const rest = settings.to?.endsWith('*') === true
  if (rest && (!path.below || path.suffix !== undefined))
    at.below('to').error(
      'ends in "*", but the path of the rule does not',
      'write /* at the end of path, or remove it here',
    )
  const to = at.below('to').parse(settings.to?.replace(/\*$/, ''), (text) => parseLocation(text, rest))
  return to === undefined || status === undefined
    ? undefined
    : { kind: 'redirect', status, to, rest, headers, maxAgeMs }
}

/**
 * A URL, or a path at the same host.
 * @throws {SyntaxError} names what is wrong
 */
function parseLocation(text: string, rest: boolean): string {
  const [, address = '', more = ''] = /^([^?#]*)(.*)$/s.exec(text) ?? []
  const { origin } = address.startsWith('/') ? standInUrl : parseHttpUrl(address, 'https://new.example.com')
  if (/[^\x21-\x7e]|[\\*]/.test(text))
    throw new SyntaxError('must be a URL or a path, percent-encoded, with "*" only at its end')
  // The browser would read another host (RFC 3986 §4.2).
  if (URL.parse(text, standInUrl.href)?.origin !== origin)
    throw new SyntaxError('leads to another host: a path has one "/" at its beginning')
  if (rest && (more !== '' || !/[^/]\/(?:.*\/)?$|^\/$/.test(address)))
    throw new SyntaxError('must have "*" at its end as a whole segment, as in https://new.example.com/*')
  return text
}

function readMaintenance(
  settings: RuleRespondSettings['maintenance'],
  ruleAt: Setting,
  claims: ShortNames,
): MaintenanceConfig | undefined {
  const at = ruleAt.below('respond', 'maintenance')
  if (settings === false) at.error('is false', 'remove the rule when the maintenance is over')
  if (settings === undefined || settings === false) return undefined
  const { unless, retryAfterMs } = settings
  return { kind: 'maintenance', retryAfterMs, unless: readRequirements(unless, at.below('unless'), claims) }
}

function readFiles(settings: RuleRespondSettings, at: Setting, path: PathPattern): FilesConfig | undefined {
  const { files = '', headers, maxAgeMs } = settings
  if (!path.below) at.error('needs a path of the rule that ends in "*": it is the path in the folder')
  const folder = namedFile(files, at)
  const why = faultOfFolder(folder)
  if (why !== undefined) at.error(`the folder ${folder} ${why}`)
  return { kind: 'files', folder: resolve(folder), headers, maxAgeMs }
}

function faultOfFolder(folder: string): string | undefined {
  try {
    return statSync(folder).isDirectory() ? undefined : 'is a file'
  } catch (error) {
    return explainFileError(error)
  }
}

const maxContentBytes = 1024 * 1024

/** The media types of files, by the endings of their names. */
const mediaTypes: Readonly<Record<string, string>> = {
  '.txt': 'text/plain; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.xml': 'application/xml',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.webp': 'image/webp',
  '.pdf': 'application/pdf',
}

function readFixed(settings: RuleRespondSettings, at: Setting): FixedResponseConfig | undefined {
  const { text, file, status = 200, maxAgeMs } = settings
  const has = text !== undefined || file !== undefined
  const content = file === undefined ? undefined : readNamedFile(file, at.below('file'), maxContentBytes)
  if (file !== undefined && content === undefined) return undefined
  const named = Object.keys(settings.headers).some((name) => name.toLowerCase() === 'content-type')
  const type = ownMember(mediaTypes, file === undefined ? '.txt' : extname(file).toLowerCase())
  if (!named && type === undefined && text === undefined)
    at.below('file').error('has an unknown type', 'write headers: { Content-Type: … } beside it')
  const headers = { ...(has && !named && type !== undefined && { 'Content-Type': type }), ...settings.headers }
  return { kind: 'fixed', status, headers, maxAgeMs, bytes: content?.bytes ?? Buffer.from(text ?? '') }
}
