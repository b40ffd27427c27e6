import type { UpstreamConfig } from '../config/model/upstream.ts'
import type { ApplicationResponseSettings } from '../config/settings.ts'
import { matchesAny } from '../core/patterns.ts'
import { nameInSetCookie } from '../http/cookie-jar.ts'
import type { Addresses } from '../proxy/addresses.ts'
import type { OwnResponse } from '../proxy/own-exchange.ts'
import { fieldValue, isHtmlPage } from '../proxy/session-notice.ts'
import type { HtmlForm, UnclearForm } from './html-form.ts'

/** A response, perhaps without its content. */
type Head = Pick<OwnResponse, 'status' | 'fields'> & Partial<OwnResponse>
type SignIn = NonNullable<UpstreamConfig['applicationSignIn']>

/** The public addresses of an application for one request. */
export interface Place {
  readonly addresses: Addresses
  /** The public URL of the request. */
  readonly url: URL
}

/** A form, and the public URL that it is sent to. */
export interface PlacedForm extends HtmlForm {
  readonly target: URL
  readonly isUtf8: boolean
}

export type SignInOutcome = 'done' | 'refused' | 'unknown'

/** The `Set-Cookie` values of a response. */
export function setCookiesOf({ fields }: Pick<Head, 'fields'>): readonly string[] {
  return fields.filter((_, at) => at % 2 === 1 && fields[at - 1]?.toLowerCase() === 'set-cookie')
}

/** Recognizes the responses of an application that are about its sign-in. */
export class Recognition {
  readonly #signIn: SignIn
  readonly #names: readonly string[]

  constructor(signIn: SignIn) {
    this.#signIn = signIn
    this.#names = signIn.values.map(([name]) => name)
  }

  /** Whether the application asks for a sign-in, or may do so if the content is not known yet. */
  asks(head: Head, place: Place): boolean {
    const { asks, kind } = this.#signIn
    if (kind === 'basic')
      return head.status === 401 && /(?:^|,)\s*basic\b/i.test(fieldValue(head.fields, 'www-authenticate'))
    const further = asks ?? (kind === 'json' ? { status: 401 } : undefined)
    return this.#leadsToPage(head, place) || (further !== undefined && matches(further, head, place))
  }

  /** Whether the response may be a page that has the form. */
  mayHaveForm({ status, fields }: Head): boolean {
    return this.#signIn.kind === 'form' && (status < 300 || status >= 400) && isHtmlPage(fields)
  }

  /** The form of a page. `undefined`: the page has none. */
  async formIn(
    { fields, content }: OwnResponse,
    { addresses, url }: Place,
  ): Promise<PlacedForm | UnclearForm | undefined> {
    if (!isHtmlPage(fields)) return undefined
    const isUtf8 = isInUtf8(fieldValue(fields, 'content-type'), content)
    // Loaded on first use, because most gateways parse no HTML.
    const { findForm } = await import('./html-form.ts')
    const form = findForm(content.toString(isUtf8 ? 'utf8' : 'latin1'), this.#names)
    if (form === undefined || 'unclear' in form) return form
    const target = URL.parse(addresses.response('location', form.action), url.href)
    // A form without an address is sent to the URL of its page (HTML §4.10.21.3).
    if (target === null) return { unclear: 'the address of the form is malformed' }
    if (target.origin !== url.origin || target.username !== '') return { unclear: 'the form is sent to another origin' }
    if (target.pathname !== pathOf(this.#signIn.action)) return { unclear: 'the form is sent to another path' }
    return { ...form, target, isUtf8 }
  }

  /** What the response to the sign-in means. */
  async outcomeOf(response: OwnResponse, place: Place): Promise<SignInOutcome> {
    const { kind, success, refusal } = this.#signIn
    const { status } = response
    // Such a redirect would send the password to another address.
    if (status === 307 || status === 308) return 'unknown'
    if (refusal !== undefined && matches(refusal, response, place)) return 'refused'
    const isSuccess =
      success !== undefined
        ? matches(success, response, place)
        : kind === 'form'
          ? isRedirect(status) && locationOf(response, place) !== undefined && !this.#leadsToPage(response, place)
          : kind === 'json'
            ? status < 300
            : status !== 401 && status < 500
    if (isSuccess) return 'done'
    if (refusal !== undefined) return 'unknown'
    if (kind !== 'form')
      return status === 401 || (kind === 'json' && (status === 400 || status === 403)) ? 'refused' : 'unknown'
    const form = isRedirect(status) || status >= 500 ? undefined : await this.formIn(response, place)
    return this.#leadsToPage(response, place) || status === 401 || form !== undefined ? 'refused' : 'unknown'
  }

  /**
   * The public path and query of the page that a redirect leads to, if it is the page with the
   * form.
   */
  pageOf(head: Head, place: Place): string | undefined {
    const location = this.#leadsToPage(head, place) ? locationOf(head, place) : undefined
    return location && location.pathname + location.search
  }

  #leadsToPage(head: Head, place: Place): boolean {
    const { page } = this.#signIn
    const location = page === undefined || !isRedirect(head.status) ? undefined : locationOf(head, place)
    if (page === undefined || location?.pathname !== pathOf(page)) return false
    const wanted = new URLSearchParams(page.replace(/^[^?]*/, ''))
    return [...wanted].every(([name, value]) => location.searchParams.getAll(name).includes(value))
  }
}

function isRedirect(status: number): boolean {
  return [301, 302, 303, 307, 308].includes(status)
}

/** The public URL that a response redirects to; `undefined` when it is at another origin. */
function locationOf({ fields }: Head, { addresses, url }: Place): URL | undefined {
  const location = fieldValue(fields, 'location')
  const target = location === '' ? null : URL.parse(addresses.response('location', location), url.href)
  return target?.origin === url.origin ? target : undefined
}

function matches(condition: ApplicationResponseSettings, head: Head, place: Place): boolean {
  const { status = head.status, path, cookie, contains } = condition
  if (status !== head.status) return false
  // Without the content, it may contain the text.
  if (contains !== undefined && !(isHtmlPage(head.fields) && head.content?.includes(contains) !== false)) return false
  if (path !== undefined && (!isRedirect(head.status) || locationOf(head, place)?.pathname !== path)) return false
  return cookie === undefined || setCookiesOf(head).some((text) => matchesAny([cookie], nameInSetCookie(text)))
}

function pathOf(target: string): string {
  return target.replace(/\?.*$/s, '')
}

/** Whether a browser sends the form of a page in UTF-8. */
function isInUtf8(contentType: string, content: Buffer): boolean {
  const [, charset] = /;\s*charset\s*=\s*"?([^\s";]+)/i.exec(contentType) ?? []
  return charset === undefined
    ? /<meta[^>]{0,200}charset\s*=\s*["']?utf-?8/i.test(content.toString('latin1', 0, 4096))
    : /^utf-?8$/i.test(charset)
}
