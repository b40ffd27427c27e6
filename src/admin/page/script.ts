/**
 * The script of the administration page. It receives parts of the page from `/events`, and changes
 * the elements with their ids until they are equal. It changes nothing that is equal already, so
 * the focus, an open `<details>` and the scroll position stay. A part with a selection waits until
 * nothing is selected. The page works without the script.
 *
 * A hidden page has no stream, because a browser opens only six connections to a server.
 */
export const adminScript = `
(() => {
const byId = (id) => document.getElementById(id)
const [bar, status, updated, button] = ['live', 'live-status', 'live-updated', 'live-pause'].map(byId)
const waiting = new Map()
let source, timer, brokenAt, lastAt = Date.now(), isPaused = false, isOver = false, isFull = false
const clock = (at) => new Date(at).toISOString().slice(11, 19) + ' UTC'
const say = (text) => { if (status.textContent !== text) status.textContent = text }

function morph(old, next) {
  if (old.isEqualNode(next)) return
  for (const { name } of [...old.attributes]) if (!next.hasAttribute(name) && name !== 'open') old.removeAttribute(name)
  for (const { name, value } of next.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value)
  const kept = new Map([...old.children].filter((child) => child.id).map((child) => [child.id, child]))
  const wanted = new Set([...next.children].map((child) => child.id))
  let at = old.firstChild
  for (const child of [...next.childNodes]) {
    while (at?.id && !wanted.has(at.id)) at = remove(at)
    const same = child.id ? kept.get(child.id) : at && !at.id && at.nodeName === child.nodeName ? at : undefined
    if (!same) { old.insertBefore(child, at); continue }
    if (same === at) at = at.nextSibling
    else old.insertBefore(same, at)
    if (same.nodeType === 1) morph(same, child)
    else if (same.data !== child.data) same.data = child.data
  }
  while (at) at = remove(at)
}
function remove(node) {
  const next = node.nextSibling
  node.remove()
  return next
}
function isSelected(element) {
  const selection = getSelection()
  return !selection.isCollapsed && selection.containsNode(element, true)
}
function apply() {
  for (const [id, html] of [...waiting]) {
    const old = byId(id)
    if (old && isSelected(old)) continue
    waiting.delete(id)
    if (!old) continue
    const focused = old.contains(document.activeElement) ? document.activeElement : undefined
    const template = document.createElement('template')
    template.innerHTML = html
    morph(old, template.content.firstElementChild)
    if (focused && document.activeElement !== focused)
      (focused.isConnected ? focused : old.querySelector('[tabindex]') ?? byId('main')).focus({ preventScroll: true })
  }
}
function broken() {
  if (isFull) return
  brokenAt ??= lastAt
  say('The connection is lost: the page shows the state of ' + clock(brokenAt) + '. It tries again.')
}
function close() {
  clearTimeout(timer)
  source?.close()
  source = undefined
}
function open() {
  close()
  if (isPaused || isOver || document.hidden) return
  source = new EventSource('/events' + location.search)
  timer = setTimeout(retry, 30000)
  source.onmessage = ({ data }) => {
    const { at, parts } = JSON.parse(data)
    lastAt = at
    brokenAt = undefined
    for (const { id, html } of parts) waiting.set(id, html)
    apply()
    say('Live')
    updated.textContent = 'Updated ' + clock(at)
    clearTimeout(timer)
    timer = setTimeout(retry, 30000)
  }
  source.onopen = () => { isFull = false }
  source.addEventListener('full', ({ data }) => {
    isFull = true
    clearTimeout(timer)
    timer = setTimeout(retry, 30000)
    say('Too many pages are open: ' + data + ' others get updates, and this one shows the state of ' + clock(lastAt) + '. Close one of them. This page tries again.')
  })
  source.addEventListener('outdated', () => {
    isOver = true
    close()
    say('The configuration has changed, and the page shows the state of ' + clock(lastAt) + '. Reload it.')
  })
  source.onerror = () => {
    broken()
    isFull = false
    if (source.readyState !== EventSource.CLOSED) return
    clearTimeout(timer)
    timer = setTimeout(open, 10000)
  }
}
function retry() {
  broken()
  open()
}
button.onclick = () => {
  isPaused = !isPaused
  button.textContent = isPaused ? 'Continue' : 'Pause'
  if (isPaused) say('Paused: the page shows the state of ' + clock(lastAt))
  open()
}
document.addEventListener('click', async ({ target }) => {
  const copy = target.closest('.copy')
  if (!copy) return
  const code = copy.previousElementSibling
  // Without TLS a browser has no clipboard API, except on loopback.
  const isCopied = (await navigator.clipboard?.writeText(code.textContent).then(() => true, () => false)) || copySelected(code)
  byId('copied').textContent = copy.textContent = isCopied ? 'Copied' : 'Selected: copy it now'
  setTimeout(() => { byId('copied').textContent = ''; copy.textContent = 'Copy' }, 3000)
})
function copySelected(element) {
  const selection = getSelection()
  selection.selectAllChildren(element)
  const isCopied = document.execCommand('copy')
  if (isCopied) selection.empty()
  return isCopied
}
document.addEventListener('visibilitychange', open)
document.addEventListener('selectionchange', () => { if (getSelection().isCollapsed) apply() })
addEventListener('pagehide', close)
addEventListener('pageshow', ({ persisted }) => { if (persisted) open() })
bar.hidden = false
open()
})()
`
