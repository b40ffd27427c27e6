import { ownMember } from '../core/json.ts'

/** A form that a browser would send with POST, as a form of the usual type. */
export interface HtmlForm {
  /** The value of `action`; empty without one. */
  readonly action: string
  /** What a browser would send with the first button, without what people enter. */
  readonly controls: readonly (readonly [name: string, value: string])[]
}

/**
 * Why a form of a page is not used: a part of the page that this reader does not understand. It has
 * no text of the page, because the log has one line for each reason.
 */
export interface UnclearForm {
  readonly unclear: string
}

interface Tag {
  /** In lower case, with `/` before that of an end tag. */
  readonly name: string
  readonly attributes: ReadonlyMap<string, string>
}

interface OpenForm {
  readonly attributes: ReadonlyMap<string, string>
  readonly controls: (readonly [string, string])[]
  hasButton: boolean
  unclear: string | undefined
}

/** Elements whose content has no tags for a browser with scripts (HTML §13.2.5). */
const rawText = [
  'script',
  'style',
  'textarea',
  'title',
  'noscript',
  'template',
  'iframe',
  'noembed',
  'noframes',
  'xmp',
  'plaintext',
]
/** Types of `input` that send no value. */
const silentTypes = ['button', 'reset', 'image']

/**
 * The form of a page that has all these fields. It reads what is usual in such pages, in one pass
 * (HTML §13.2). What it does not understand, it does not use: the person gets the form instead.
 * @returns `undefined` when no form has the fields
 */
export function findForm(html: string, names: readonly string[]): HtmlForm | UnclearForm | undefined {
  const forms: OpenForm[] = []
  const fault = readForms(html, forms)
  const found = forms.filter(
    ({ attributes, controls }) =>
      attributes.get('method')?.toLowerCase() === 'post' &&
      names.every((name) => controls.some(([each]) => each === name)),
  )
  const [form] = found
  if (form === undefined) return undefined
  const { attributes, controls } = form
  const isTwice = names.some((name) => controls.filter(([each]) => each === name).length > 1)
  const enctype = attributes.get('enctype')?.toLowerCase() ?? usualType
  const unclear =
    fault ??
    form.unclear ??
    (found.length > 1 ? 'several forms have the fields' : undefined) ??
    (isTwice ? 'the form has a field twice' : undefined) ??
    (enctype === usualType ? undefined : 'the form has another enctype')
  return unclear === undefined ? { action: attributes.get('action')?.trim() ?? '', controls } : { unclear }
}

const usualType = 'application/x-www-form-urlencoded'

/** @returns a fault that concerns all forms */
function readForms(html: string, forms: OpenForm[]): string | undefined {
  let fault: string | undefined
  let form: OpenForm | undefined
  let select: { readonly attributes: Tag['attributes']; value: string | undefined; isChosen: boolean } | undefined
  for (const tag of tagsIn(html)) {
    if (typeof tag === 'string') return tag
    const { name, attributes } = tag
    if (name === 'base' && attributes.has('href')) fault ??= 'the page has another base address'
    if (name === 'form' && form !== undefined) fault ??= 'a form is in another form'
    else if (name === 'form') {
      forms.push((form = { attributes, controls: [], hasButton: false, unclear: undefined }))
    } else if (name === '/form') form = undefined
    else if (isControl(name) && attributes.has('form')) fault ??= 'a field names its form'
    else if (name === 'fieldset' && attributes.has('disabled')) fault ??= 'fields of the page are disabled'
    else if (form === undefined) continue
    else if (name === 'select') select = { attributes, value: undefined, isChosen: false }
    else if (name === 'option' && select !== undefined && !select.isChosen) {
      if (!attributes.has('value')) form.unclear ??= 'an option has no value'
      select.isChosen = attributes.has('selected')
      if (select.isChosen) select.value = attributes.get('value')
      else select.value ??= attributes.get('value')
    } else if (name === '/select' && select !== undefined) {
      if (select.value !== undefined) add(form, select.attributes, select.value)
      select = undefined
    } else if (name === 'textarea' && attributes.has('name')) form.unclear ??= 'the form has a text area'
    else if (name === 'input') addInput(form, attributes)
    else if (name === 'button' && (attributes.get('type') ?? 'submit').toLowerCase() === 'submit')
      addButton(form, attributes)
  }
  return fault
}

function isControl(name: string): boolean {
  return name === 'input' || name === 'button' || name === 'select' || name === 'textarea'
}

function addInput(form: OpenForm, attributes: Tag['attributes']): void {
  const type = attributes.get('type')?.toLowerCase() ?? 'text'
  if (type === 'submit') return addButton(form, attributes)
  if (type === 'file') form.unclear ??= 'the form has a file'
  if (silentTypes.includes(type)) return
  const isBox = type === 'checkbox' || type === 'radio'
  if (!isBox || attributes.has('checked')) add(form, attributes, attributes.get('value') ?? (isBox ? 'on' : ''))
}

/** Only the first button is pressed (HTML §4.10.21.2). */
function addButton(form: OpenForm, attributes: Tag['attributes']): void {
  if (form.hasButton || attributes.has('disabled')) return
  form.hasButton = true
  if ([...attributes.keys()].some((name) => /^form(?:action|method|enctype)$/.test(name)))
    form.unclear ??= 'the button sends another form'
  add(form, attributes, attributes.get('value') ?? '')
}

function add({ controls }: OpenForm, attributes: Tag['attributes'], value: string): void {
  const name = attributes.get('name') ?? ''
  if (name !== '' && !attributes.has('disabled')) controls.push([name, value])
}

/** The tags of a page. A text says what is not understood, and is the last one. */
function* tagsIn(html: string): Generator<Tag | string> {
  // Only letters of ASCII, because others may become longer.
  const lower = html.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase())
  let at = 0
  for (;;) {
    const open = html.indexOf('<', at)
    if (open < 0) return
    at = open + 1
    if (html.startsWith('!--', at)) {
      const end = html.indexOf('-->', at + 3)
      const comment = html.slice(at + 3, end < 0 ? undefined : end)
      if (end < 0 || /^-?>|--!>/.test(comment)) return yield 'the page has an unusual comment'
      at = end + 3
      continue
    }
    // What it is depends on the elements around it (HTML §13.2.5.42).
    if (html.startsWith('![CDATA[', at)) return yield 'the page has a CDATA section'
    if (!/^\/?[a-z]/.test(lower.slice(at, at + 2))) {
      // Browsers take `<!doctype>`, `<?xml>` and `</>` for something without content.
      if (/^[!?/]/.test(html.slice(at, at + 1))) at = html.indexOf('>', at) + 1 || html.length
      continue
    }
    const read = readTag(html, lower, at)
    if (read === undefined) return
    yield read.tag
    at = read.end
    if (typeof read.tag === 'string') return
    if (!rawText.includes(read.tag.name)) continue
    const end = lower.indexOf(`</${read.tag.name}`, at)
    if (end < 0) return
    // HTML §13.2.5.28.
    const comment = lower.slice(at, end).indexOf('<!--')
    const isNested = read.tag.name === 'script' && comment >= 0 && lower.slice(at + comment, end).includes('<script')
    if (isNested || read.tag.name === 'template') return yield 'the page has an unusual script or a template'
    at = end
  }
}

/** Reads a tag from its name on. `undefined`: the page ends in it. */
function readTag(
  html: string,
  lower: string,
  start: number,
): { readonly tag: Tag | string; readonly end: number } | undefined {
  const attributes = new Map<string, string>()
  let at = start
  const next = (pattern: RegExp): string => {
    pattern.lastIndex = at
    const [found = ''] = pattern.exec(html) ?? []
    at += found.length
    return found
  }
  const name = lower.slice(start, start + next(/\/?[^\s/>]+/y).length)
  for (;;) {
    next(/[\s/]*/y)
    if (at >= html.length) return undefined
    if (html[at] === '>') return { tag: { name, attributes }, end: at + 1 }
    const attributeAt = at
    const attribute = lower.slice(attributeAt, attributeAt + next(/=?[^\s/>=]*/y).length)
    let value = ''
    if (next(/\s*=\s*/y) !== '') {
      const quote = html[at]
      if (quote === '"' || quote === "'") {
        const end = html.indexOf(quote, at + 1)
        if (end < 0) return undefined
        value = html.slice(at + 1, end)
        at = end + 1
      } else value = next(/[^\s>]*/y)
    }
    const decoded = decodedText(value)
    // Of equal names, the first counts.
    if (decoded === undefined && isRead(name)) return { tag: 'a value has an unusual character', end: at }
    if (!attributes.has(attribute)) attributes.set(attribute, decoded ?? '')
  }
}

/** Whether the attributes of an element count. */
function isRead(name: string): boolean {
  return isControl(name) || name === 'form' || name === 'option' || name === 'base'
}

const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: '\u00a0' }

/** Decodes the character references of an attribute; `undefined`: one is not known. */
function decodedText(text: string): string | undefined {
  if (!text.includes('&')) return text
  let isKnown = true
  const decoded = text.replaceAll(/&(?:#(?:(\d{1,7})|x([\da-f]{1,6}));|([a-z][\da-z]*)(;?))/gi, (whole, ...groups) => {
    const [decimal, hex, name, semicolon] = groups as (string | undefined)[]
    const code = decimal !== undefined ? Number(decimal) : Number.parseInt(hex ?? '', 16)
    // Some numbers mean other characters (HTML §13.2.5.80).
    if (name === undefined && (code < 0x20 || (code >= 0x7f && code < 0xa0) || code > 0x10ffff)) isKnown = false
    if (name === undefined) return isKnown ? String.fromCodePoint(code) : whole
    const character = ownMember(entities, name)
    // The names of parameters in addresses, such as "&page=2", stay as they are.
    if (semicolon === '' && character === undefined) return whole
    if (semicolon === '' || character === undefined) isKnown = false
    return character ?? whole
  })
  return isKnown && !/&#/.test(text.replaceAll(/&#(?:\d{1,7}|x[\da-f]{1,6});/gi, '')) ? decoded : undefined
}
