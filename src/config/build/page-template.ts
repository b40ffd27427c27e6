import { ownMember } from '../../core/json.ts'
import type { PageTemplate, Placeholder } from '../../core/page-names.ts'

/** An error in a template, and its offset in characters, counting a line break as one character. */
export interface TemplateFault {
  readonly offset: number
  readonly message: string
  readonly hint?: string
  /** The unknown placeholder. */
  readonly unknown?: string
}

export interface ParsedPageTemplate {
  /** Must not be used when there are faults. */
  readonly template: PageTemplate
  readonly faults: readonly TemplateFault[]
  /** Parts of the template that have no effect in a browser. */
  readonly warnings: readonly TemplateFault[]
}

/**
 * Reads a template such as `<h1>{{title}}</h1>`. Placeholders are allowed in text and in quoted
 * attributes, where escaping is safe.
 */
export function parsePageTemplate(source: string, known: readonly string[]): ParsedPageTemplate {
  const html = withPlainLineBreaks(source)
  const { styles, faultAt, warnings } = readMarkup(html)
  const parts: (string | { readonly placeholder: Placeholder })[] = []
  const faults: TemplateFault[] = []
  let at = 0
  for (const { index, 0: whole, 1: inBraces } of html.matchAll(/\{\{(?:([^{}\n]*)\}\})?/g)) {
    const fault = faultOf(inBraces?.trim(), known) ?? faultAt(index)
    if (fault !== undefined) faults.push({ offset: index, ...fault })
    parts.push(html.slice(at, index), { placeholder: (inBraces?.trim() ?? '') as Placeholder })
    at = index + whole.length
  }
  return { template: { parts: [...parts, html.slice(at)], styles }, faults, warnings }
}

/** Normalizes line breaks as a browser does before it hashes a style (HTML §13.2.3.5). */
export function withPlainLineBreaks(html: string): string {
  return html.replaceAll(/\r\n?/g, '\n')
}

type Fault = Omit<TemplateFault, 'offset'>

function faultOf(name: string | undefined, known: readonly string[]): Fault | undefined {
  if (name === undefined)
    return { message: '"{{" does not begin a placeholder', hint: 'a placeholder is {{name}}, on one line' }
  if (known.includes(name)) return undefined
  return { message: `{{${name}}} is not known on this page`, unknown: name }
}

interface Span {
  readonly from: number
  readonly to: number
}

/**
 * Finds the styles of a template, parts that have no effect, and the places where no placeholder is
 * allowed.
 */
function readMarkup(html: string): {
  readonly styles: readonly string[]
  readonly faultAt: (offset: number) => Fault | undefined
  readonly warnings: readonly TemplateFault[]
} {
  const elements = [...elementsOf(html)]
  const closed = elements.flatMap(({ name, from, to, content }) => [
    { from, to, fault: inTag },
    ...(content === undefined ? [] : [{ ...content, fault: inRawText(name) }]),
  ])
  const open = elements.flatMap(({ attributes }) =>
    attributes
      .filter(({ name, value }) => value.isQuoted && !/^(?:on.*|style|srcdoc)$/.test(name))
      .map(({ value }) => value),
  )
  const isIn = (offset: number) => (span: Span) => span.from <= offset && offset < span.to
  return {
    styles: elements.flatMap(({ name, content }) =>
      name === 'style' && content !== undefined ? [html.slice(content.from, content.to)] : [],
    ),
    warnings: elements.flatMap((element) => warningsOf(element, html)),
    faultAt: (offset) => (open.some(isIn(offset)) ? undefined : closed.find(isIn(offset))?.fault),
  }
}

function warningsOf({ name, from, to, attributes }: MarkupElement, html: string): TemplateFault[] {
  const warning = ownMember(neverLoaded, name)
  return [
    ...(warning === undefined ? [] : [{ offset: from, ...warning }]),
    ...attributes.flatMap((attribute) => {
      if (attribute.name === 'style') return [{ offset: attribute.from, ...noStyleAttribute }]
      const isSource = attribute.name === 'src' || attribute.name === 'srcset'
      const isEmbedded = /^["']?(?:data:|\{\{ *logo_url *\}\})/.test(html.slice(attribute.value.from, to))
      return isSource && !isEmbedded ? [{ offset: attribute.from, ...noSource }] : []
    }),
  ]
}

const neverLoaded: Readonly<Record<string, Fault>> = {
  script: { message: '<script> is never run: a page has no scripts' },
  link: { message: '<link> is never loaded: a page loads nothing', hint: 'put styles into <style>' },
  iframe: { message: '<iframe> is never loaded: a page loads nothing' },
}
const noStyleAttribute: Fault = { message: 'a style attribute has no effect', hint: 'put styles into <style>' }
const noSource: Fault = { message: 'the file is never loaded: a page loads nothing', hint: 'write src="data:…"' }
const inTag: Fault = {
  message: 'a placeholder is not allowed here',
  hint: 'put it into text, or into an attribute with quotes',
}

function inRawText(element: string): Fault {
  return { message: `a placeholder is not allowed within <${element}>` }
}

/** A start tag in HTML, at the character `from`, up to `to`. */
interface MarkupElement {
  /** In lower case. */
  readonly name: string
  readonly from: number
  readonly to: number
  /** The attributes that have a value. */
  readonly attributes: readonly MarkupAttribute[]
  /** The raw text in a `<style>` or `<script>`. */
  readonly content: { readonly from: number; readonly to: number } | undefined
}

interface MarkupAttribute {
  /** In lower case. */
  readonly name: string
  readonly from: number
  /** The value with its quotes. */
  readonly value: { readonly from: number; readonly to: number; readonly isQuoted: boolean }
}

const tag = /<!--(?:-?>|[^]*?(?:--!?>|$))|<([a-z][^\s/>]*)((?:[^>"']|"[^"]*"|'[^']*')*)>?/gi
const attribute = /([^\s"'<>/=]+)\s*=\s*("[^"]*"|'[^']*'|[^\s"'>][^\s>]*)/g

/**
 * The start tags of HTML as browsers find them (HTML §13.2.5). Deliberately obscure markup may be
 * read differently.
 */
function* elementsOf(html: string): Generator<MarkupElement> {
  let at = 0
  for (;;) {
    tag.lastIndex = at
    const found = tag.exec(html)
    if (found === null) return
    at = tag.lastIndex
    const [whole, written, attributes = ''] = found
    if (written === undefined) continue
    const from = found.index
    const to = from + whole.length
    const name = written.toLowerCase()
    const content = name === 'style' || name === 'script' ? { from: to, to: endOf(name, html, to) } : undefined
    if (content !== undefined) at = content.to
    yield { name, from, to, content, attributes: [...attributesOf(attributes, from + 1 + written.length)] }
  }
}

function* attributesOf(text: string, offset: number): Generator<MarkupAttribute> {
  for (const { index, 0: whole, 1: name = '', 2: value = '' } of text.matchAll(attribute)) {
    const from = offset + index
    const to = from + whole.length
    yield { name: name.toLowerCase(), from, value: { from: to - value.length, to, isQuoted: /^["']/.test(value) } }
  }
}

function endOf(name: string, html: string, from: number): number {
  const end = new RegExp(`</${name}[\\s/>]`, 'gi')
  end.lastIndex = from
  return end.exec(html)?.index ?? html.length
}
