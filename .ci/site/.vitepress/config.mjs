// The configuration of VitePress. .ci/site.mjs builds one version with it; the variables say which.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, posix, relative } from 'node:path'
import process from 'node:process'
import { githubSlug } from './github-slug.mjs'

/** The root of a checkout, its version, all versions, and the path where the site will be. */
const { SITE_SOURCE: source, SITE_VERSION: version, SITE_VERSIONS: all, SITE_BASE: base } = process.env
const docs = join(source, 'docs')
const manifest = JSON.parse(readFileSync(join(source, 'package.json'), 'utf8'))
const repository = manifest.repository.url.replace(/^git\+|\.git$/g, '')
const ref = version === 'main' ? 'main' : `v${version}`
const read = (page) => readFileSync(join(docs, page), 'utf8')

/** The first heading of a page, without the marks of code. */
function titleOf(page) {
  return (/^# +(.+)$/m.exec(read(page))?.[1] ?? page).replaceAll('`', '')
}

/** A page for the list at the side; below the page of a folder, the other pages of the folder. */
function entryOf(page) {
  const entry = { text: titleOf(page), link: `/${page.replace(/README\.md$/, '')}` }
  if (!page.endsWith('/README.md')) return entry
  const folder = dirname(page)
  const others = readdirSync(join(docs, folder)).filter((name) => name.endsWith('.md') && name !== 'README.md')
  const items = others.sort().map((name) => entryOf(posix.join(folder, name)))
  return { ...entry, collapsed: true, items }
}

/** The list at the side: the headings of docs/README.md, and the pages below each of them. */
function sidebar() {
  return read('README.md')
    .split(/^## +/m)
    .slice(1)
    .map((section) => {
      const links = [...section.matchAll(/\]\(([^):#]+\.md)\)/g)].map(([, page]) => page)
      const pages = [...new Set(links)].filter((page) => !page.startsWith('../'))
      const folders = pages.filter((page) => page.endsWith('/README.md')).map(dirname)
      const isListed = (page) => page.endsWith('/README.md') || !folders.includes(dirname(page))
      return { text: section.split('\n')[0], items: pages.filter(isListed).map(entryOf) }
    })
}

/**
 * The target of a link for the site. Pages of docs/ stay links between pages. Other files are in
 * the repository, at the version of the site.
 */
function targetOf(href, page) {
  if (/^[a-z][a-z+.-]*:|^#/i.test(href)) return href
  const [path, ...anchor] = href.split('#')
  const suffix = anchor.length > 0 ? `#${anchor.join('#')}` : ''
  const file = join(dirname(page), decodeURIComponent(path))
  if (!existsSync(file)) throw new Error(`${relative(source, page)}: the link ${href} has no target`)
  const readme = join(file, 'README.md')
  const target = file.startsWith(docs) && existsSync(readme) ? readme : file
  if (!target.startsWith(docs) || !target.endsWith('.md')) {
    const kind = /\.\w+$/.test(file) ? 'blob' : 'tree'
    return `${repository}/${kind}/${ref}/${relative(source, file)}${suffix}`
  }
  const to = relative(dirname(page), target).replace(/README\.md$/, 'index.md')
  return `./${to}${suffix}`
}

/** A plugin of markdown-it, for pages that are written for GitHub. */
function readLikeGitHub(md) {
  md.core.ruler.push('links-of-github', ({ tokens, env }) => {
    for (const token of tokens.flatMap(({ children }) => children ?? []))
      if (token.type === 'link_open') token.attrSet('href', targetOf(token.attrGet('href'), env.path))
  })
  // Vue would take text between double braces for an expression.
  for (const rule of ['text', 'code_inline']) {
    const render = md.renderer.rules[rule]
    md.renderer.rules[rule] = (...args) => render(...args).replaceAll('{{', '&#123;&#123;')
  }
}

const versions = all.split(',')

/**
 * The search. A name such as `session.idle_timeout` is a word, and so are its parts. All words have
 * to be found. Pages about one provider or application, and decisions, come behind the others. The
 * site contains these functions as text, so they use nothing outside them.
 */
const miniSearch = {
  options: {
    tokenize: (text) =>
      text
        .split(/[^\p{L}\p{N}_.]+/u)
        .map((word) => word.replace(/^\.+|\.+$/g, ''))
        .flatMap((word) => [word, ...(/[_.]/.test(word) ? [...word.split('.'), ...word.split(/[_.]/)] : [])])
        .filter((word, at, all) => word !== '' && all.indexOf(word, Math.max(0, at - 8)) === at),
  },
  searchOptions: {
    combineWith: 'AND',
    fuzzy: (term) => (/[_.]/.test(term) ? false : 0.2),
    boostDocument: (id, term) => {
      if (/\/(?:applications|decisions|providers|migrating)\//.test(id)) return 0.2
      // The page with the name of the term, and for a setting the reference.
      if (id.includes(`/${term}.html`)) return 4
      return /[_.]/.test(term) && id.includes('/reference.html') ? 4 : 1
    },
  },
}

export default {
  title: 'Gatehouse',
  description: manifest.description,
  lang: 'en-US',
  base: `${base}${version}/`,
  srcDir: docs,
  outDir: process.env.SITE_OUT,
  cacheDir: join(process.env.SITE_OUT, '..', '.cache'),
  // An address on the machine of the reader.
  ignoreDeadLinks: [/^http:\/\/(?:localhost|127\.0\.0\.1)[:/]/],
  rewrites: (page) => page.replace(/README\.md$/, 'index.md'),
  markdown: {
    anchor: { slugify: githubSlug },
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
    config: readLikeGitHub,
  },
  themeConfig: {
    search: { provider: 'local', options: { miniSearch } },
    sidebar: sidebar(),
    outline: { level: [2, 3] },
    nav: [
      { text: 'First application', link: '/first-application' },
      { text: 'Reference', link: '/reference' },
      {
        text: version,
        // A page of another version is not part of this one: the browser has to load it.
        items: versions.map((other) => ({ text: other, link: `/../${other}/`, target: '_self', noIcon: true })),
      },
    ],
    socialLinks: [{ icon: 'github', link: repository }],
    editLink: version === 'main' ? { pattern: `${repository}/edit/main/docs/:path` } : undefined,
  },
}
