import type { Language, PagesConfig } from '../config/model/pages.ts'
import { pageActions, type PageAction, type PageName, type PageTemplate, type Placeholder } from '../core/page-names.ts'
import type { Response } from '../http/response.ts'
import { layout, type PageContent, type PageLink } from './layout.ts'
import type { Messages } from './messages/messages.ts'
import { escape, htmlResponse, sourceHash } from './page.ts'
import { styleOf } from './style.ts'

/** The text of a page, independent of its layout. */
export interface PageText {
  readonly language: Language
  /** For dates and numbers, such as `en-GB`. */
  readonly locale: string
  readonly messages: Messages
  readonly status: number
  readonly title: string
  readonly text: string
  readonly requestId: string
  /** The name of the rule that denies access. */
  readonly rule?: string | undefined
}

export interface FullPage extends PageText {
  readonly page: PageName
  readonly urls: Readonly<Record<PageAction, string>>
  /**
   * The origins, besides its own, that the response to the form may redirect to. Absent: the page
   * has no form.
   */
  readonly formTargets?: readonly string[] | undefined
  /** The page is shown in a frame of these origins, with a script that sends requests. */
  readonly inFrame?: { readonly framedBy: readonly string[]; readonly script?: string | undefined } | undefined
}

interface BuiltInOptions extends Pick<PageContent, 'outcome' | 'html' | 'areEqual' | 'script'> {
  /** The origins, besides its own, that the responses to its buttons may redirect to. */
  readonly formTargets?: readonly string[] | undefined
  /** The origins whose pages may show it in a frame. */
  readonly framedBy?: readonly string[]
  readonly connectsToSelf?: boolean
}

/**
 * Renders pages: with the built-in layout and the name, logo and colors of the configuration, or
 * with templates of the operator.
 */
export class PageRenderer {
  readonly #config: PagesConfig
  readonly #style: string
  readonly #styleHash: string

  constructor(config: PagesConfig) {
    this.#config = config
    this.#style = styleOf(config.colours)
    this.#styleHash = sourceHash(this.#style)
  }

  page(content: FullPage): Response {
    const { inFrame } = content
    const template = this.#config.templates[content.page]
    // The links of a template would open in the frame, where a sign-in is not possible.
    if (template !== undefined && inFrame === undefined) return this.#byTemplate(template, content)
    const links = pageActions[content.page].map((action, index) => ({
      href: content.urls[action],
      text: content.messages.actions[action],
      opensWindow: inFrame !== undefined && action !== 'retry',
      post: content.formTargets !== undefined && index === 0 ? { fields: {} } : undefined,
    }))
    const connectsToSelf = inFrame?.script !== undefined
    return this.builtIn(content, links, { formTargets: content.formTargets, ...inFrame, connectsToSelf })
  }

  /** Renders the built-in layout. */
  builtIn(
    content: PageText,
    links: readonly PageLink[],
    { formTargets, framedBy = [], connectsToSelf = false, ...shown }: BuiltInOptions = {},
  ): Response {
    const { language, messages, status } = content
    const { name, logo } = this.#config
    const { script } = shown
    const html = layout({
      ...content,
      ...shown,
      dir: messages.dir,
      style: this.#style,
      name,
      logo,
      links,
      support: this.#support(content),
      note: noteOf(content),
    })
    return htmlResponse(status, html, language, {
      styleHashes: [this.#styleHash],
      scriptHashes: script === undefined ? [] : [sourceHash(script)],
      images: logo !== undefined,
      formTargets,
      framedBy,
      connectsToSelf,
    })
  }

  #byTemplate(template: PageTemplate, content: FullPage): Response {
    const values = this.#values(content)
    const html = template.parts.map((part) => (typeof part === 'string' ? part : escape(values[part.placeholder])))
    return htmlResponse(content.status, html.join(''), content.language, {
      styleHashes: template.styles.map(sourceHash),
      images: true,
      formTargets: content.formTargets,
    })
  }

  #values(content: FullPage): Readonly<Record<Placeholder, string>> {
    const { language, messages, status, title, text, urls } = content
    const { actions } = messages
    const support = this.#support(content)
    return {
      lang: language,
      dir: messages.dir,
      title,
      text,
      status: String(status),
      request_id: content.requestId,
      request_label: messages.request,
      rule_name: content.rule ?? '',
      rule_label: content.rule === undefined ? '' : messages.rule,
      // A template that uses a value without its setting is an error of the configuration.
      name: this.#config.name ?? '',
      logo_url: this.#config.logo ?? '',
      support_label: messages.support,
      support_text: support?.text ?? '',
      support_url: support?.url ?? '',
      home_url: urls.home,
      home_label: actions.home,
      sign_in_url: urls.sign_in,
      sign_in_label: actions.sign_in,
      other_account_url: urls.other_account,
      other_account_label: actions.other_account,
      retry_url: urls.retry,
      retry_label: actions.retry,
      sign_out_url: urls.sign_out,
      sign_out_label: actions.sign_out,
      right_address_url: urls.right_address,
      right_address_label: actions.right_address,
      stay_signed_in_url: urls.stay_signed_in,
      stay_signed_in_label: actions.stay_signed_in,
    }
  }

  #support({ messages, requestId }: PageText) {
    const { support } = this.#config
    if (support === undefined) return undefined
    const { text, url } = support
    // The request ID becomes the subject of the mail, so that support can find the request (RFC
    // 6068 §2).
    const isMail = url?.startsWith('mailto:') === true
    return { label: messages.support, text, url: isMail ? `${url}?subject=${encodeURIComponent(requestId)}` : url }
  }
}

/** `403 · Request ID 7Zc… · Rule: Finance only` */
function noteOf({ status, messages, requestId, rule }: PageText): string {
  const parts = [`${messages.request} ${requestId}`]
  if (status >= 400) parts.unshift(String(status))
  if (rule !== undefined) parts.push(`${messages.rule}: ${rule}`)
  return parts.join(' · ')
}
