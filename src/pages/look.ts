import type { Language, PagesConfig } from '../config/model.ts'
import {
  pageActions,
  type PageAction,
  type PageName,
  type PageTemplate,
  type Placeholder,
} from '../core/page-template.ts'
import type { Response } from '../http/response.ts'
import { layout, type PageLink } from './layout.ts'
import type { Messages } from './messages/messages.ts'
import { escape, htmlResponse, styleHash } from './page.ts'
import { styleOf } from './style.ts'

/** What a page is to say, whatever it looks like. */
export interface Spoken {
  readonly language: Language
  readonly said: Messages
  readonly status: number
  readonly title: string
  readonly text: string
  readonly requestId: string
}

export interface SpokenPage extends Spoken {
  readonly page: PageName
  readonly urls: Readonly<Record<PageAction, string>>
  /**
   * The other origins that answering the form of this page may redirect to. Absent: it has none.
   */
  readonly goesOnTo?: readonly string[] | undefined
  /** It is shown in a frame of its own origin. */
  readonly inFrame?: boolean | undefined
}

/**
 * How pages look: as they are built in, with the name, logo and colours of the configuration, or by
 * templates of the operator.
 */
export class Look {
  readonly #config: PagesConfig
  readonly #style: string
  readonly #styleHash: string

  constructor(config: PagesConfig) {
    this.#config = config
    this.#style = styleOf(config.colours)
    this.#styleHash = styleHash(this.#style)
  }

  page(spoken: SpokenPage): Response {
    const inFrame = spoken.inFrame === true
    const template = this.#config.templates[spoken.page]
    // The links of a template would open in the frame, where nobody can sign in.
    if (template !== undefined && !inFrame) return this.#byTemplate(template, spoken)
    const links = pageActions[spoken.page].map((action) => ({
      href: spoken.urls[action],
      text: spoken.said.actions[action],
      opensWindow: inFrame && action !== 'retry',
    }))
    return this.builtIn(spoken, links, { goesOnTo: spoken.goesOnTo, framedBy: inFrame ? ["'self'"] : [] })
  }

  /**
   * `goesOnTo`: the first link is the button of a form that is sent with POST, and may be
   * redirected to these origins. `framedBy`: pages of these origins may show it in a frame.
   */
  builtIn(
    spoken: Spoken,
    links: readonly PageLink[],
    {
      goesOnTo,
      framedBy = [],
    }: { readonly goesOnTo?: readonly string[] | undefined; readonly framedBy?: readonly string[] } = {},
  ): Response {
    const { language, said, status, title, text } = spoken
    const { name, logo } = this.#config
    const html = layout({
      ...{ language, dir: said.dir, style: this.#style, name, logo, title, text, links },
      isForm: goesOnTo !== undefined,
      support: this.#support(spoken),
      note: `${status < 400 ? '' : `${status} · `}${said.request} ${spoken.requestId}`,
    })
    return htmlResponse(status, html, language, {
      styleHashes: [this.#styleHash],
      images: logo !== undefined,
      formGoesOnTo: goesOnTo,
      framedBy,
    })
  }

  #byTemplate(template: PageTemplate, spoken: SpokenPage): Response {
    const values = this.#values(spoken)
    const html = template.parts.map((part) => (typeof part === 'string' ? part : escape(values[part.placeholder])))
    return htmlResponse(spoken.status, html.join(''), spoken.language, {
      styleHashes: template.styles.map(styleHash),
      images: true,
      formGoesOnTo: spoken.goesOnTo,
    })
  }

  #values(spoken: SpokenPage): Readonly<Record<Placeholder, string>> {
    const { language, said, status, title, text, urls } = spoken
    const { actions } = said
    const support = this.#support(spoken)
    return {
      ...{ lang: language, dir: said.dir, title, text, status: String(status) },
      request_id: spoken.requestId,
      request_label: said.request,
      // The configuration is refused when a template names one of these and there is none.
      name: this.#config.name ?? '',
      logo_url: this.#config.logo ?? '',
      support_label: said.support,
      support_text: support?.text ?? '',
      support_url: support?.url ?? '',
      ...{ home_url: urls.home, home_label: actions.home },
      ...{ sign_in_url: urls.sign_in, sign_in_label: actions.sign_in },
      ...{ other_account_url: urls.other_account, other_account_label: actions.other_account },
      ...{ retry_url: urls.retry, retry_label: actions.retry },
      ...{ sign_out_url: urls.sign_out, sign_out_label: actions.sign_out },
      ...{ right_address_url: urls.right_address, right_address_label: actions.right_address },
      ...{ stay_signed_in_url: urls.stay_signed_in, stay_signed_in_label: actions.stay_signed_in },
    }
  }

  #support({ said, requestId }: Spoken) {
    const { support } = this.#config
    if (support === undefined) return undefined
    const { text, url } = support
    // RFC 6068 §2: so that whoever is written to can find the request.
    const isMail = url?.startsWith('mailto:') === true
    return { label: said.support, text, url: isMail ? `${url}?subject=${encodeURIComponent(requestId)}` : url }
  }
}
