import { SAXParser } from 'parse5-sax-parser'

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

type Attributes = ReadonlyMap<string, string>

interface OpenForm {
  readonly attributes: Attributes
  readonly controls: (readonly [string, string])[]
  hasButton: boolean
  unclear: string | undefined
}

/** The most `svg` and `math` elements of a page. Many of them, nested, make the parser slow. */
const maxForeign = 1000
/** Types of `input` that send no value. */
const silentTypes = ['button', 'reset', 'image']

/**
 * The form of a page that has all these fields. The tags are those that a browser with scripts
 * finds (HTML §13.2.5). A form that is not usual is not used: the person gets it instead.
 * @returns `undefined` when no form has the fields
 */
export function findForm(html: string, names: readonly string[]): HtmlForm | UnclearForm | undefined {
  // Most pages have no such form, and need not be parsed. Only the part of a name before its first
  // unusual character is searched, because a page may write such a character as a reference.
  if (!names.every((name) => html.includes(/[\w-]*/.exec(name)?.[0] ?? ''))) return undefined
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
  let foreign = 0
  let form: OpenForm | undefined
  let select: { readonly attributes: Attributes; value: string | undefined; isChosen: boolean } | undefined
  const parser = new SAXParser()
  parser.on('startTag', ({ tagName: name, attrs }) => {
    const attributes: Attributes = new Map(attrs.map((each) => [each.name, each.value]))
    if (name === 'base' && attributes.has('href')) fault ??= 'the page has another base address'
    if (name === 'template') fault ??= 'the page has a template'
    if ((name === 'svg' || name === 'math') && ++foreign > maxForeign) {
      fault = 'the page has too many drawings'
      parser.stop()
    }
    if (name === 'form' && form !== undefined) fault ??= 'a form is in another form'
    else if (name === 'form') {
      forms.push((form = { attributes, controls: [], hasButton: false, unclear: undefined }))
    } else if (isControl(name) && attributes.has('form')) fault ??= 'a field names its form'
    else if (name === 'fieldset' && attributes.has('disabled')) fault ??= 'fields of the page are disabled'
    else if (form === undefined) return
    else if (name === 'select') select = { attributes, value: undefined, isChosen: false }
    else if (name === 'option' && select !== undefined && !select.isChosen) {
      if (!attributes.has('value')) form.unclear ??= 'an option has no value'
      select.isChosen = attributes.has('selected')
      if (select.isChosen) select.value = attributes.get('value')
      else select.value ??= attributes.get('value')
    } else if (name === 'textarea' && attributes.has('name')) form.unclear ??= 'the form has a text area'
    else if (name === 'input') addInput(form, attributes)
    else if (name === 'button' && (attributes.get('type') ?? 'submit').toLowerCase() === 'submit')
      addButton(form, attributes)
  })
  parser.on('endTag', ({ tagName }) => {
    if (tagName === 'form') form = undefined
    if (tagName !== 'select' || select === undefined) return
    if (select.value !== undefined && form !== undefined) add(form, select.attributes, select.value)
    select = undefined
  })
  // All events come before it returns.
  parser.end(html)
  return fault
}

function isControl(name: string): boolean {
  return name === 'input' || name === 'button' || name === 'select' || name === 'textarea'
}

function addInput(form: OpenForm, attributes: Attributes): void {
  const type = attributes.get('type')?.toLowerCase() ?? 'text'
  if (type === 'submit') return addButton(form, attributes)
  if (type === 'file') form.unclear ??= 'the form has a file'
  if (silentTypes.includes(type)) return
  const isBox = type === 'checkbox' || type === 'radio'
  if (!isBox || attributes.has('checked')) add(form, attributes, attributes.get('value') ?? (isBox ? 'on' : ''))
}

/** Only the first button is pressed (HTML §4.10.21.2). */
function addButton(form: OpenForm, attributes: Attributes): void {
  if (form.hasButton || attributes.has('disabled')) return
  form.hasButton = true
  if ([...attributes.keys()].some((name) => /^form(?:action|method|enctype)$/.test(name)))
    form.unclear ??= 'the button sends another form'
  add(form, attributes, attributes.get('value') ?? '')
}

function add({ controls }: OpenForm, attributes: Attributes, value: string): void {
  const name = attributes.get('name') ?? ''
  if (name !== '' && !attributes.has('disabled')) controls.push([name, value])
}
