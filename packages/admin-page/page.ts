import {
  escape,
  htmlResponse,
  type OrderOutcome,
  type Overview,
  type PagesConfig,
  type Response,
  sourceHash,
  styleOf,
} from '../../src/entries/admin-page.ts'
import { chartsHtml } from './charts.ts'
import { idOf, moreHtml } from './html.ts'
import { searchForm, sessionsHtml } from './sessions.ts'
import { aboutHtml, cachesHtml, providerHtml, targetsHtml, upstreamsHtml, workHtml } from './state.ts'
import { texts } from './texts.ts'
import { timelineHtml } from './timeline.ts'

/** A part of the page that an update replaces: an element with this id. */
export interface PagePart {
  readonly id: string
  readonly html: string
}

interface Section {
  /** The id of its heading. */
  readonly id: string
  readonly title: string
  /**
   * HTML before the part that updates replace. A section without one is closed in a narrow window.
   */
  readonly form?: string
  readonly html: string
}

/**
 * The pages for administration. They are in English and load nothing. The overview has a script
 * that receives updates, and works without it.
 */
export class AdminPages {
  readonly #style: string
  readonly #styleHash: string

  constructor({ colours }: Pick<PagesConfig, 'colours'>) {
    this.#style = `${styleOf(colours)}\n${texts.uPlotStyle}\n${texts.style}`
    this.#styleHash = sourceHash(this.#style)
  }

  overview(overview: Overview): Response {
    const sections = sectionsOf(overview)
    const links = sections.map(({ id, title }) => `<li><a href="#${id}">${title}</a></li>`)
    const html = sections.map(
      ({ id, title, form = moreHtml(title), html: content }) =>
        `<section>\n<h2 id="${id}">${title}</h2>\n${form}\n${partHtml(id, content)}\n</section>`,
    )
    const head = [
      partHtml('about', aboutHtml(overview)),
      '<div id="live" hidden><p id="live-status" role="status">Connecting</p><p id="live-updated"></p><button id="live-pause" class="second" type="button">Pause</button><p id="copied" role="status"></p></div>',
      '<noscript><p><a href="">Refresh</a></p></noscript>',
    ]
    const nav = `<nav aria-label="Sections"><ul>${links.join('')}</ul></nav>`
    return this.#response(200, { title: `Gatehouse at ${overview.host}`, head, nav, html, isLive: true })
  }

  outcome({ status, title, text }: OrderOutcome): Response {
    const html = [`<p>${escape(text)}</p>`, '<p><a href="/">Back to the overview</a></p>']
    return this.#response(status, { title, head: [], nav: '', html, isLive: false })
  }

  #response(status: number, page: PageText): Response {
    const { title, head, nav, html, isLive } = page
    const document = [
      '<!doctype html>',
      '<html lang="en">',
      '<head>',
      '<meta charset="utf-8">',
      '<meta name="viewport" content="width=device-width, initial-scale=1">',
      '<meta name="robots" content="noindex">',
      `<title>${escape(title)}</title>`,
      `<style>${this.#style}</style>`,
      '</head>',
      '<body>',
      ...(nav === '' ? [] : ['<a class="skip" href="#main">Skip to the content</a>']),
      `<header>\n<h1>${escape(title)}</h1>`,
      ...head,
      '</header>',
      nav,
      '<main id="main" tabindex="-1">',
      ...html,
      '</main>',
      ...(isLive ? [`<script>${adminScript}</script>`] : []),
      '</body>',
      '</html>',
      '',
    ].join('\n')
    const scripts = isLive ? { scriptHashes: [scriptHash], connectsToSelf: true } : {}
    const policy = { styleHashes: [this.#styleHash], images: false, formTargets: [], ...scripts }
    const response = htmlResponse(status, document, 'en', policy)
    // The page that opened this one must have no access to its window.
    return { ...response, headers: { ...response.headers, 'Cross-Origin-Opener-Policy': 'same-origin' } }
  }
}

interface PageText {
  readonly title: string
  /** HTML. */
  readonly head: readonly string[]
  readonly nav: string
  readonly html: readonly string[]
  /** Whether it has the script. */
  readonly isLive: boolean
}

const adminScript = `\n${texts.uPlotScript}\n${texts.script}`
const scriptHash = sourceHash(adminScript)

/** The parts of the page that updates replace. */
export function partsOf(overview: Overview): readonly PagePart[] {
  const parts = [{ id: 'about', html: aboutHtml(overview) }, ...sectionsOf(overview)]
  return parts.map(({ id, html }) => ({ id: partId(id), html: partHtml(id, html) }))
}

function sectionsOf(overview: Overview): readonly Section[] {
  const { providers, processes, at } = overview
  return [
    { id: 'charts', title: 'Charts', html: chartsHtml(overview) },
    { id: 'sessions', title: 'Sessions', form: searchForm(overview), html: sessionsHtml(overview) },
    { id: 'timeline', title: 'Timeline', html: timelineHtml(overview) },
    { id: 'upstreams', title: 'Upstreams', html: upstreamsHtml(overview) + targetsHtml(overview) },
    ...providers.map((provider) => {
      const [id, title] =
        providers.length === 1
          ? ['provider', 'Provider']
          : [idOf('provider', provider.name), `Provider ${escape(provider.name)}`]
      return { id, title, html: providerHtml(provider, id, processes.responding, at) }
    }),
    { id: 'caches', title: 'Caches', html: cachesHtml(overview) },
    { id: 'work', title: 'Background work', html: workHtml(overview) },
  ]
}

function partId(id: string): string {
  return `part-${id}`
}

function partHtml(id: string, html: string): string {
  return `<div id="${partId(id)}">${html}</div>`
}
