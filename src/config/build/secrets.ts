import { dirname, join } from 'node:path'
import { readBounded } from '../document/files.ts'
import { below, type Report } from '../document/report.ts'
import type { SecretSettings } from '../settings.ts'

export type Environment = Readonly<Record<string, string | undefined>>

const maxSecretBytes = 64 * 1024

/** Reads a secret from its environment variable or file. Diagnostics never contain it. */
export function readSecret(secret: SecretSettings, at: string, env: Environment, report: Report): string | undefined {
  if (secret.env !== undefined) return readVariable(secret.env, below(at, 'env'), env, report)
  if (secret.file !== undefined) return readSecretFile(secret.file, below(at, 'file'), report)
  return undefined
}

/** Reads a secret that may have several lines, such as a key. */
export function readSecretText(
  secret: Pick<SecretSettings, 'env' | 'file'>,
  at: string,
  env: Environment,
  report: Report,
): string | undefined {
  if (secret.env !== undefined) return valueOf(secret.env, below(at, 'env'), env, report)
  if (secret.file !== undefined) return contentOf(secret.file, below(at, 'file'), report)?.bytes.toString('utf8')
  return undefined
}

function readVariable(name: string, at: string, env: Environment, report: Report): string | undefined {
  const value = valueOf(name, at, env, report)
  return value === undefined ? undefined : checkSecret(value, at, `the environment variable ${name}`, report)
}

function valueOf(name: string, at: string, env: Environment, report: Report): string | undefined {
  const value = env[name]
  if (value === undefined)
    report.error(at, `the environment variable ${name} is not set`, 'set it before the start, or write { file: PATH }')
  return value
}

function readSecretFile(path: string, at: string, report: Report): string | undefined {
  const content = contentOf(path, at, report)
  return content && checkSecret(content.bytes.toString('utf8'), at, content.file, report)
}

function contentOf(path: string, at: string, report: Report): ReturnType<typeof readNamedFile> {
  const content = readNamedFile(path, at, report, maxSecretBytes)
  if (content !== undefined) report.secretFiles.push({ setting: report.pathText(at), file: content.file })
  return content
}

function checkSecret(text: string, at: string, source: string, report: Report): string | undefined {
  // Editors and `echo` end a file with a line break, which is not part of the secret.
  const secret = withoutLastLineBreaks(text)
  if (secret === '') report.error(at, `${source} is empty`)
  else if (/[\0-\x1f\x7f\ufffd]/.test(secret)) report.error(at, `${source} is not one line of text`)
  else {
    warnOfQuotesAndSpaces(secret, at, source, report)
    return secret
  }
  return undefined
}

/**
 * Compose files, `.env` files and `echo "..." >` can put quotes or spaces around a secret.
 */
function warnOfQuotesAndSpaces(secret: string, at: string, source: string, report: Report): void {
  const found =
    secret.trim() === secret
      ? /^(["'`]).*\1$/.test(secret)
        ? 'begins and ends with a quotation mark, which is part of the secret'
        : undefined
      : 'begins or ends with white space, which is part of the secret'
  if (found !== undefined) report.warning(at, `${source} ${found}`, 'remove it unless it belongs to the secret')
}

function withoutLastLineBreaks(text: string): string {
  let end = text.length
  while (end > 0 && (text[end - 1] === '\n' || text[end - 1] === '\r')) end -= 1
  return text.slice(0, end)
}

/**
 * Reads a file that a setting names. The path is relative to the file that contains the setting.
 */
export function readNamedFile(
  path: string,
  at: string,
  report: Report,
  limit: number,
): { readonly file: string; readonly bytes: Buffer } | undefined {
  const file = namedFile(path, at, report)
  report.recordFile(file)
  const content = readBounded(file, limit)
  if ('bytes' in content) return { file, bytes: content.bytes }
  report.error(at, `${file} ${content.why}`)
  return undefined
}

export function namedFile(path: string, at: string, report: Report): string {
  return path.startsWith('/') ? path : join(dirname(report.keyPlace(at).file), path)
}
