import type { Setting } from '../document/report.ts'
import { readNamedFile } from './secrets.ts'

/** The limit is small because each page contains the logo. */
const maxLogoBytes = 32 * 1024

type ImageType = 'image/png' | 'image/webp' | 'image/svg+xml'

/**
 * The logo as a `data:` URI. Pages show it in `<img>` alone, where an SVG runs no script and loads
 * nothing (SVG Integration, "secure static mode").
 */
export function readLogo(value: string | undefined, at: Setting): string | undefined {
  if (value === undefined) return undefined
  if (/^data:/i.test(value)) return at.parse(undefined, () => checkDataUri(value), 'such as data:image/png;base64,…')
  const content = readNamedFile(value, at, maxLogoBytes)
  return content && at.parse(undefined, () => dataUri(content.bytes, content.file))
}

function dataUri(bytes: Buffer, source: string): string {
  return `data:${typeOf(bytes, source)};base64,${bytes.toString('base64')}`
}

function checkDataUri(text: string): string {
  const [, type, base64, data] = /^data:([\w/+.-]*)(?:;charset=[\w-]+)?(;base64)?,(.*)$/is.exec(text) ?? []
  if (type === undefined || data === undefined) throw new SyntaxError('is not a data: URI of an image')
  const bytes = base64 === undefined ? Buffer.from(percentDecoded(data)) : Buffer.from(data, 'base64')
  if (bytes.length > maxLogoBytes) throw new SyntaxError(`is larger than ${maxLogoBytes / 1024} KiB`)
  const uri = dataUri(bytes, 'the data: URI')
  if (!uri.startsWith(`data:${type.toLowerCase()};`)) throw new SyntaxError(`claims to be ${type}, but is not`)
  return uri
}

function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new SyntaxError('contains a "%" that does not begin a percent-encoding')
  }
}

/**
 * The type of an image, from its content and not from the name of its file.
 * @throws {SyntaxError} names what is wrong
 */
function typeOf(bytes: Buffer, source: string): ImageType {
  if (bytes.subarray(0, 8).equals(pngSignature)) return 'image/png'
  if (bytes.toString('latin1', 0, 4) === 'RIFF' && bytes.toString('latin1', 8, 12) === 'WEBP') return 'image/webp'
  const text = bytes.toString('utf8')
  if (!svgStart.test(text)) throw new SyntaxError(`${source} is not a PNG, SVG or WebP image`)
  if (!/<svg\s[^>]*xmlns\s*=\s*["']http:\/\/www\.w3\.org\/2000\/svg["']/.test(text))
    throw new SyntaxError(
      `${source} has no xmlns="http://www.w3.org/2000/svg" in its <svg>, so browsers do not show it`,
    )
  return 'image/svg+xml'
}

// PNG (ISO/IEC 15948) §5.2.
const pngSignature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
const svgStart = /^\ufeff?\s*(?:<\?xml[^>]*\?>\s*)?(?:<!--(?:(?!-->)[^])*-->\s*|<!DOCTYPE svg[^>]*>\s*)*<svg[\s>]/i
