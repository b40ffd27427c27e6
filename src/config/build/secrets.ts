import { dirname, join } from 'node:path'
import { readBounded } from '../document/files.ts'
import { below, type Report } from '../document/report.ts'
import type { SecretSettings } from '../settings.ts'

export type Environment = Readonly<Record<string, string | undefined>>

const maxSecretBytes = 64 * 1024

/** Reads a secret from where the file says it is. What it reads never appears in a diagnostic. */
export function readSecret(secret: SecretSettings, at: string, env: Environment, report: Report): string | undefined {
  if (secret.env !== undefined) return readVariable(secret.env, below(at, 'env'), env, report)
  if (secret.file !== undefined) return readSecretFile(secret.file, below(at, 'file'), report)
  return undefined
}

function readVariable(name: string, at: string, env: Environment, report: Report): string | undefined {
  const value = env[name]
  if (value === undefined) {
    report.error(at, `the environment variable ${name} is not set`, 'set it before the start, or write { file: PATH }')
    return undefined
  }
  return checkSecret(value, at, `the environment variable ${name}`, report)
}

function readSecretFile(written: string, at: string, report: Report): string | undefined {
  const content = readNamedFile(written, at, report, maxSecretBytes)
  if (content !== undefined) report.secretFiles.push({ setting: report.pathText(at), file: content.file })
  return content && checkSecret(content.bytes.toString('utf8'), at, content.file, report)
}

function checkSecret(text: string, at: string, source: string, report: Report): string | undefined {
  // Editors and `echo` end a file with a line break that nobody means to be part of the secret.
  const secret = withoutLastLineBreaks(text)
  if (secret === '') report.error(at, `${source} is empty`)
  else if (/[\0-\x1f\x7f\ufffd]/.test(secret)) report.error(at, `${source} is not one line of text`)
  else {
    warnOfSurroundings(secret, at, source, report)
    return secret
  }
  return undefined
}

/**
 * Compose files, `.env` files and `echo "..." >` put characters around a secret that nobody sees
 * afterwards.
 */
function warnOfSurroundings(secret: string, at: string, source: string, report: Report): void {
  const found =
    secret.trim() === secret
      ? /^(["'`]).*\1$/.test(secret)
        ? 'begins and ends with a quotation mark, which is taken as part of it'
        : undefined
      : 'begins or ends with white space, which is taken as part of it'
  if (found !== undefined) report.warning(at, `${source} ${found}`, 'remove it, unless the secret really has it')
}

function withoutLastLineBreaks(text: string): string {
  let end = text.length
  while (end > 0 && (text[end - 1] === '\n' || text[end - 1] === '\r')) end -= 1
  return text.slice(0, end)
}

/** A file that a setting names, relative to the file in which the setting stands. */
export function readNamedFile(
  written: string,
  at: string,
  report: Report,
  limit: number,
): { readonly file: string; readonly bytes: Buffer } | undefined {
  const file = namedFile(written, at, report)
  report.looksAt(file)
  const content = readBounded(file, limit)
  if ('bytes' in content) return { file, bytes: content.bytes }
  report.error(at, `${file} ${content.why}`)
  return undefined
}

export function namedFile(written: string, at: string, report: Report): string {
  return written.startsWith('/') ? written : join(dirname(report.keyPlace(at).file), written)
}
