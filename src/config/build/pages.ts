import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import {
  type ConfiguredPlaceholder,
  optionalActions,
  pageActions,
  type PageName,
  pageNames,
  type PageTemplate,
  placeholdersOf,
} from '../../core/page-names.ts'
import { parseLink } from '../addresses.ts'
import { textColorOn } from '../colors.ts'
import type { Place } from '../document/diagnostics.ts'
import { didYouMean } from '../document/did-you-mean.ts'
import { explainFileError, readBounded } from '../document/files.ts'
import type { Setting } from '../document/report.ts'
import { namedFile, readNamedFile } from '../document/secrets.ts'
import type { ColorsConfig, PagesConfig, SupportConfig } from '../model/pages.ts'
import type { PagesSettings, PagesSupportSettings } from '../settings.ts'
import { parsePageTemplate, type TemplateFault, withPlainLineBreaks } from './page-template.ts'

const maxTemplateBytes = 64 * 1024

export function buildPages(settings: PagesSettings, at: Setting): PagesConfig {
  const pages = {
    name: settings.name,
    logo: readLogo(settings.logo, at.below('logo')),
    language: settings.language,
    colours: { light: buildColors(settings.colours.light), dark: buildColors(settings.colours.dark) },
    support: buildSupport(settings.support, at.below('support')),
  }
  return { ...pages, templates: readTemplates(settings.templates, at.below('templates'), unset(settings, at)) }
}

function buildColors(settings: PagesSettings['colours']['light']): ColorsConfig {
  return { ...settings, onAccent: textColorOn(settings.accent) }
}

function buildSupport(settings: PagesSupportSettings | undefined, at: Setting): SupportConfig | undefined {
  if (settings === undefined) return undefined
  const { text, url, mail } = settings
  if (mail !== undefined) return { text: text ?? mail, url: `mailto:${mail}` }
  const target = at.below('url').parse(url, (text) => parseLink(text, 'https://help.example.com/sign-in'))
  return { text: text ?? target?.host ?? '', url: target?.href }
}

/** Placeholders without a value, each with the setting that gives them one. */
function unset({ name, logo, support }: PagesSettings, at: Setting): ReadonlyMap<string, string> {
  const sources: Readonly<Record<ConfiguredPlaceholder, readonly [setting: string, value: unknown]>> = {
    name: ['pages.name', name],
    logo_url: ['pages.logo', logo],
    support_label: ['pages.support', support],
    support_text: ['pages.support', support],
    support_url: ['pages.support.url or mail', support?.url ?? support?.mail],
  }
  return new Map(
    Object.entries(sources).flatMap(([placeholder, [setting, value]]) =>
      value === undefined && !at.below(setting.split(/[. ]/)[1] ?? '').isReported ? [[placeholder, setting]] : [],
    ),
  )
}

function readTemplates(
  path: string | undefined,
  at: Setting,
  unset: ReadonlyMap<string, string>,
): PagesConfig['templates'] {
  if (path === undefined) return {}
  const folder = namedFile(path, at)
  at.report.recordFile(folder)
  const files = namesIn(folder, at).filter((file) => file.endsWith('.html') && !file.startsWith('.'))
  const templates: Partial<Record<PageName, PageTemplate>> = {}
  for (const file of files) {
    const name = pageNames.find((page) => `${page}.html` === file)
    const path = join(folder, file)
    if (name === undefined) reportUnknownPage(path, file, at)
    else {
      const template = readTemplate(path, name, at, unset)
      if (template !== undefined) templates[name] = template
    }
  }
  if (files.length === 0 && at.isValid)
    at.error(`${folder} contains no template`, `such as ${pageNames.slice(0, 3).join('.html, ')}.html`)
  return templates
}

function namesIn(folder: string, at: Setting): readonly string[] {
  try {
    return readdirSync(folder).toSorted()
  } catch (error) {
    const isFile = error instanceof Error && 'code' in error && error.code === 'ENOTDIR'
    at.error(`the folder ${folder} ${isFile ? 'is a file' : explainFileError(error)}`)
    return []
  }
}

function reportUnknownPage(path: string, file: string, at: Setting): void {
  const meant = didYouMean(file.replace(/\.html$/, ''), pageNames)
  at.errorAtPlace(
    { file: path, line: 0, column: 0 },
    'is not the name of a page',
    meant === undefined ? `the pages are ${pageNames.join(', ')}` : `did you mean "${meant}.html"?`,
  )
}

function readTemplate(
  file: string,
  page: PageName,
  at: Setting,
  unset: ReadonlyMap<string, string>,
): PageTemplate | undefined {
  const whole: Place = { file, line: 0, column: 0 }
  at.report.recordFile(file)
  const content = readBounded(file, maxTemplateBytes)
  if ('why' in content) return void at.errorAtPlace(whole, content.why)
  const text = content.bytes.toString('utf8')
  if (text.includes('\ufffd') || text.includes('\0')) return void at.errorAtPlace(whole, 'is not text in UTF-8')

  at.report.sources.add(file, text)
  const { template, faults, warnings } = parsePageTemplate(text, placeholdersOf(page))
  const placeOf = ({ offset }: TemplateFault) => placeIn(file, withPlainLineBreaks(text), offset)
  for (const fault of faults) at.errorAtPlace(placeOf(fault), fault.message, hintFor(fault, page))
  for (const warning of warnings) at.warningAtPlace(placeOf(warning), warning.message, warning.hint)
  const used = new Set(template.parts.flatMap((part) => (typeof part === 'string' ? [] : [part.placeholder])))
  for (const placeholder of used) {
    const setting = unset.get(placeholder)
    if (setting !== undefined) at.errorAtPlace(whole, `uses {{${placeholder}}}, but ${setting} is not set`)
  }
  for (const action of pageActions[page])
    if (!used.has(`${action}_url`) && !optionalActions.has(action))
      at.warningAtPlace(whole, `has no {{${action}_url}}: people who see this page cannot continue`)
  if (!used.has('request_id') && page !== 'signed-out' && page !== 'sign-out')
    at.warningAtPlace(whole, 'has no {{request_id}}, which is needed to find the request in the log')
  return template
}

function hintFor({ unknown, hint }: TemplateFault, page: PageName): string | undefined {
  if (unknown === undefined) return hint
  const meant = didYouMean(unknown, placeholdersOf(page))
  return meant === undefined ? `placeholders here: ${placeholdersOf(page).join(', ')}` : `did you mean {{${meant}}}?`
}

function placeIn(file: string, text: string, offset: number): Place {
  const before = text.slice(0, offset).split('\n')
  return { file, line: before.length, column: (before.at(-1) ?? '').length + 1 }
}

/** The limit is small because each page contains the logo. */
const maxLogoBytes = 32 * 1024

type ImageType = 'image/png' | 'image/webp' | 'image/svg+xml'

/**
 * The logo as a `data:` URI. Pages show it in `<img>` alone, where an SVG runs no script and loads
 * nothing (SVG Integration, "secure static mode").
 */
function readLogo(value: string | undefined, at: Setting): string | undefined {
  if (value === undefined) return undefined
  if (/^data:/i.test(value)) return at.parse(value, checkDataUri, 'such as data:image/png;base64,…')
  const content = readNamedFile(value, at, maxLogoBytes)
  return at.parse(content, ({ bytes, file }) => dataUri(bytes, file))
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
