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
const silentTypes = ['button', 'reset']
/** Elements without an end tag. */
const voidElement = /^(?:area|base|br|col|embed|frame|hr|img|input|keygen|link|meta|param|source|track|wbr)$/
/** Elements whose end tag may be missing at the end of others (HTML §13.2.6.3). */
const impliedEnd = /^(?:dd|dt|li|optgroup|option|p|rb|rp|rt|rtc)$/
const endsImplied = /^(?:div|dl|fieldset|form|ol|section|ul)$/

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
  const charset = attributes.get('accept-charset')?.trim().toLowerCase() ?? usualCharset
  const unclear =
    fault ??
    form.unclear ??
    (found.length > 1 ? 'several forms have the fields' : undefined) ??
    (isTwice ? 'the form has a field twice' : undefined) ??
    (enctype === usualType ? undefined : 'the form has another enctype') ??
    (charset === usualCharset ? undefined : 'the form has another accept-charset')
  return unclear === undefined ? { action: attributes.get('action')?.trim() ?? '', controls } : { unclear }
}

const usualType = 'application/x-www-form-urlencoded'
const usualCharset = 'utf-8'

/** @returns a fault that concerns all forms */
function readForms(html: string, forms: OpenForm[]): string | undefined {
  let fault: string | undefined
  let foreign = 0
  let openForeign = 0
  let hasLooseForm = false
  const open: string[] = []
  let form: OpenForm | undefined
  let select: { readonly attributes: Attributes; value: string | undefined; isChosen: boolean } | undefined
  const parser = new SAXParser()
  parser.on('startTag', ({ tagName: name, attrs, selfClosing }) => {
    const attributes: Attributes = new Map(attrs.map((each) => [each.name, each.value]))
    if (openForeign > 0 && (name === 'form' || isControl(name))) fault ??= 'a field is in a drawing'
    const isForeign = name === 'svg' || name === 'math'
    if (!voidElement.test(name) && !(selfClosing && (isForeign || openForeign > 0))) {
      open.push(name)
      if (isForeign) openForeign++
    }
    if (name === 'frameset') fault ??= 'the page has frames'
    if (name === 'base' && attributes.has('href')) fault ??= 'the page has another base address'
    if (name === 'template') fault ??= 'the page has a template'
    if (isForeign && ++foreign > maxForeign) {
      fault = 'the page has too many drawings'
      parser.stop()
    }
    if (name === 'form' && form !== undefined) fault ??= 'a form is in another form'
    else if (name === 'form') {
      forms.push((form = { attributes, controls: [], hasButton: false, unclear: undefined }))
    } else if (isControl(name) && attributes.has('form')) fault ??= 'a field names its form'
    else if (name === 'fieldset' && attributes.has('disabled')) fault ??= 'fields of the page are disabled'
    else if (form === undefined) {
      // A browser counts it to the form whose elements are still open (HTML §4.10.17.3).
      if (hasLooseForm && isControl(name) && attributes.has('name'))
        fault ??= 'a field follows a form with open elements'
    } else if (select !== undefined && (!/^opt(?:ion|group)$/.test(name) || attributes.has('disabled')))
      form.unclear ??= 'a list has other elements than options'
    else if (name === 'select') {
      select = { attributes, value: undefined, isChosen: false }
      if (attributes.has('multiple') || (attributes.get('size') ?? '1') !== '1')
        form.unclear ??= 'a list has several lines'
    } else if (name === 'option' && select !== undefined) {
      if (!attributes.has('value')) form.unclear ??= 'an option has no value'
      const isChosen = attributes.has('selected')
      if (isChosen && select.isChosen) form.unclear ??= 'several options are selected'
      if (isChosen) select.value = attributes.get('value')
      else select.value ??= attributes.get('value')
      select.isChosen ||= isChosen
    } else if (name === 'textarea' && attributes.has('name')) form.unclear ??= 'the form has a text area'
    else if (name === 'input') addInput(form, attributes)
    else if (name === 'button' && !silentTypes.includes(attributes.get('type')?.toLowerCase() ?? ''))
      addButton(form, attributes)
  })
  parser.on('endTag', ({ tagName }) => {
    // Only what is closed in order counts as closed.
    if (endsImplied.test(tagName)) while (impliedEnd.test(open.at(-1) ?? '')) open.pop()
    if (open.at(-1) === tagName) {
      open.pop()
      if (tagName === 'svg' || tagName === 'math') openForeign--
    } else if (tagName === 'form' && form !== undefined) hasLooseForm = true
    if (tagName === 'form') {
      if (select !== undefined && form !== undefined) form.unclear ??= openList
      form = undefined
    }
    if (tagName !== 'select' || select === undefined) return
    if (select.value !== undefined && form !== undefined) add(form, select.attributes, select.value)
    select = undefined
  })
  // All events come before it returns.
  parser.end(html)
  if (select !== undefined && form !== undefined) form.unclear ??= openList
  return fault
}

const openList = 'a list has no end'

function isControl(name: string): boolean {
  return name === 'input' || name === 'button' || name === 'select' || name === 'textarea'
}

function addInput(form: OpenForm, attributes: Attributes): void {
  const type = attributes.get('type')?.toLowerCase() ?? 'text'
  if (type === 'submit' || type === 'image') return addButton(form, attributes)
  if (changesValue(type, attributes.get('value') ?? '')) form.unclear ??= 'a browser changes the value of a field'
  if (type === 'file') form.unclear ??= 'the form has a file'
  if (silentTypes.includes(type)) return
  const isBox = type === 'checkbox' || type === 'radio'
  if (type === 'radio' && attributes.has('checked') && form.controls.some(([name]) => name === attributes.get('name')))
    form.unclear ??= 'several choices are made'
  if (!isBox || attributes.has('checked')) add(form, attributes, attributes.get('value') ?? (isBox ? 'on' : ''))
}

/** HTML §4.10.5.1 */
function changesValue(type: string, value: string): boolean {
  if (type === 'email' || type === 'url') return /\s/.test(value)
  if (type === 'color' || type === 'range') return true
  return value !== '' && /^(?:number|date|time|datetime-local|month|week)$/.test(type)
}

/** Only the first button is pressed (HTML §4.10.21.2). */
function addButton(form: OpenForm, attributes: Attributes): void {
  if (form.hasButton || attributes.has('disabled')) return
  form.hasButton = true
  if ([...attributes.keys()].some((name) => /^(?:form(?:action|method|enctype)|command|commandfor)$/.test(name)))
    form.unclear ??= 'the button sends another form'
  if (attributes.get('type')?.toLowerCase() === 'image') form.unclear ??= 'the first button is an image'
  add(form, attributes, attributes.get('value') ?? '')
}

function add(form: OpenForm, attributes: Attributes, value: string): void {
  const name = attributes.get('name') ?? ''
  if (name === '' || attributes.has('disabled')) return
  if (/[\r\n]/.test(name + value)) form.unclear ??= 'a field has several lines'
  if (name.toLowerCase() === '_charset_' || attributes.has('dirname')) form.unclear ??= 'a browser fills in a field'
  form.controls.push([name, value])
}
