import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { readBounded } from './files.ts'
import type { Setting } from './report.ts'

/** Where a secret is. It has one of both. */
export interface SecretPlace {
  readonly env?: string | undefined
  readonly file?: string | undefined
}

const maxSecretBytes = 64 * 1024

/** Reads a secret from its environment variable or file. Diagnostics never contain it. */
export function readSecret(secret: SecretPlace, at: Setting): string | undefined {
  if (secret.env !== undefined) return readVariable(secret.env, at.below('env'))
  if (secret.file !== undefined) return readSecretFile(secret.file, at.below('file'))
  return undefined
}

/** Reads a complete value of `Authorization`: a scheme and the credentials (RFC 9110 §11.4). */
export function readAuthorizationValue(secret: SecretPlace, at: Setting): string | undefined {
  const value = readSecret(secret, at)
  reportOtherCharacters(value, at)
  if (value !== undefined && !/^\S+ +\S/.test(value))
    at.error('has no scheme', 'write the complete value of Authorization, such as Bearer and the token')
  return value
}

/** Other characters arrive in another encoding (RFC 9110 §5.5), so no request would match. */
export function reportOtherCharacters(secret: string | undefined, at: Setting): void {
  if (secret !== undefined && !/^[\x20-\x7e]+$/.test(secret))
    at.error('has characters that are not ASCII', 'choose another secret')
}

/** Reads a secret that may have several lines, such as a key. */
export function readSecretText(secret: SecretPlace, at: Setting): string | undefined {
  if (secret.env !== undefined) return valueOf(secret.env, at.below('env'))
  if (secret.file !== undefined) return contentOf(secret.file, at.below('file'))?.bytes.toString('utf8')
  return undefined
}

/** Takes the place of a secret that is not checked. It is also a valid key. */
const substitute = '0'.repeat(64)

/**
 * The service to which systemd shows the credential at this path; `undefined` when the file is
 * there, or is no credential (systemd.exec(5), `LoadCredential=`).
 */
function hiddenCredentialOf(path: string): string | undefined {
  const [, service] = /^\/run\/credentials\/([^/]+\.service)\/[^/]+$/.exec(path) ?? []
  return service !== undefined && !existsSync(path) ? service : undefined
}

function readVariable(name: string, at: Setting): string | undefined {
  const value = valueOf(name, at)
  return value === undefined ? undefined : checkSecret(value, at, `the environment variable ${name}`)
}

function valueOf(name: string, at: Setting): string | undefined {
  const value = at.report.env[name]
  if (value === undefined)
    at.error(`the environment variable ${name} is not set`, 'set it before the start, or write { file: PATH }')
  return value
}

function readSecretFile(path: string, at: Setting): string | undefined {
  const service = at.report.isBeforeStart ? hiddenCredentialOf(path) : undefined
  if (service !== undefined) {
    at.warning(
      `${path} exists only while ${service} runs, so its content is not checked`,
      `start the service, and see its log: systemctl start ${service}; journalctl --unit ${service}`,
    )
    return substitute
  }
  const content = contentOf(path, at)
  return content && checkSecret(content.bytes.toString('utf8'), at, content.file)
}

function contentOf(path: string, at: Setting): ReturnType<typeof readNamedFile> {
  const content = readNamedFile(path, at, maxSecretBytes)
  if (content !== undefined) at.report.secretFiles.push({ setting: at.path, file: content.file })
  return content
}

function checkSecret(text: string, at: Setting, source: string): string | undefined {
  // Editors and `echo` end a file with a line break, which is not part of the secret.
  const secret = withoutLastLineBreaks(text)
  if (secret === '') at.error(`${source} is empty`, 'write the secret there, as one line of text')
  else if (/[\0-\x1f\x7f\ufffd]/.test(secret)) at.error(`${source} is not one line of text`)
  else {
    warnOfQuotesAndSpaces(secret, at, source)
    return secret
  }
  return undefined
}

/** Compose files, `.env` files and `echo "..." >` can put quotes or spaces around a secret. */
function warnOfQuotesAndSpaces(secret: string, at: Setting, source: string): void {
  const found =
    secret.trim() === secret
      ? /^(["'`]).*\1$/.test(secret)
        ? 'begins and ends with a quotation mark, which is part of the secret'
        : undefined
      : 'begins or ends with white space, which is part of the secret'
  if (found !== undefined) at.warning(`${source} ${found}`, 'remove it unless it belongs to the secret')
}

function withoutLastLineBreaks(text: string): string {
  let end = text.length
  while (end > 0 && (text[end - 1] === '\n' || text[end - 1] === '\r')) end -= 1
  return text.slice(0, end)
}

/** Reads a file that a setting names, relative to the file that contains the setting. */
export function readNamedFile(
  path: string,
  at: Setting,
  limit: number,
): { readonly file: string; readonly bytes: Buffer } | undefined {
  if (/^[a-z]+:\/\//i.test(path)) {
    at.error('is a URL', 'write the path of a file')
    return undefined
  }
  const file = namedFile(path, at)
  at.report.recordFile(file)
  const content = readBounded(file, limit)
  if ('bytes' in content) return { file, bytes: content.bytes }
  const missing = path !== file ? 'a relative path begins at the folder of this file' : 'create it, or correct the path'
  at.error(`${file} ${content.why}`, content.todo ?? (content.isMissing === true ? missing : undefined))
  return undefined
}

export function namedFile(path: string, at: Setting): string {
  return path.startsWith('/') ? path : join(dirname(at.place.file), path)
}
