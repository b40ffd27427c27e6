// The script of the administration page, after that of uPlot. It receives parts of the page from
// `/events`, and changes the elements with their ids until they are equal. It changes nothing that
// is equal already, so the focus, an open `<details>` and the scroll position stay. A part with a
// selection waits until nothing is selected. It draws the charts with uPlot. The page works without
// the script.
//
// A hidden page has no stream, because a browser opens only six connections to a server.
;(() => {
  const byId = (id) => document.getElementById(id)
  const [bar, status, updated, button] = ['live', 'live-status', 'live-updated', 'live-pause'].map(byId)
  const waiting = new Map()
  let source,
    timer,
    brokenAt,
    lastAt = Date.now(),
    isPaused = false,
    isOver = false,
    isFull = false
  const clock = (at) => new Date(at).toISOString().slice(11, 19) + ' UTC'
  const say = (text) => {
    if (status.textContent !== text) status.textContent = text
  }

  function morph(old, next) {
    if (old.isEqualNode(next)) return
    for (const { name } of [...old.attributes])
      if (!next.hasAttribute(name) && name !== 'open') old.removeAttribute(name)
    for (const { name, value } of next.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value)
    if (old.dataset.chart) return
    const kept = new Map([...old.children].filter((child) => child.id).map((child) => [child.id, child]))
    const wanted = new Set([...next.children].map((child) => child.id))
    let at = old.firstChild
    for (const child of [...next.childNodes]) {
      while (at?.id && !wanted.has(at.id)) at = remove(at)
      const same = child.id ? kept.get(child.id) : at && !at.id && at.nodeName === child.nodeName ? at : undefined
      if (!same) {
        old.insertBefore(child, at)
        continue
      }
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
  function drawCharts() {
    for (const element of document.querySelectorAll('[data-chart]')) {
      const text = element.dataset.chart
      if (element.drawn === text) continue
      element.drawn = text
      const { unit, names, data } = JSON.parse(text)
      if (element.plot) element.plot.setData(data)
      else element.plot = chartIn(element, unit, names, data)
    }
  }
  function chartIn(element, unit, names, data) {
    const height = 180,
      font = '12px system-ui, sans-serif'
    const text = () => getComputedStyle(element.parentElement).color
    const colors = [() => getComputedStyle(element).color, text]
    const grid = { stroke: 'rgb(128 128 128 / .3)', width: 1 }
    const axis = { stroke: text, grid, ticks: grid, font, labelFont: font }
    // A value between two gaps has no line, so it gets a point.
    const filter = ({ data }, line) =>
      data[line].flatMap((value, at, all) => (value === null || all[at - 1] != null || all[at + 1] != null ? [] : at))
    // While nothing is pointed at, the legend has the latest values.
    const shown = ({ data }, value, line, at) => (at == null ? data[line].at(-1) : value)
    const line = (label, index) => ({
      label,
      value: (...of) => shown(...of) ?? '--',
      stroke: colors[index],
      width: 1.5,
      dash: index ? [4, 4] : [],
      points: { show: false, size: 3, fill: colors[index], filter },
    })
    const plot = new uPlot(
      {
        width: element.clientWidth,
        height,
        cursor: { y: false, drag: { x: false } },
        legend: {
          markers: {
            stroke: (_, index) => ['', 'var(--accent)', 'var(--text)'][index],
            dash: (_, index) => (index === 1 ? 'solid' : 'dashed'),
          },
        },
        scales: { y: { range: { min: { hard: 0, soft: 0, mode: 1 }, max: { soft: 5, mode: 1, pad: 0.1 } } } },
        axes: [
          { ...axis, size: 30, values: (_, times) => times.map((time) => clock(time * 1000).slice(0, 5)) },
          { ...axis, size: 46, label: unit, labelSize: 18 },
        ],
        series: [{ label: 'UTC', value: (...of) => clock(shown(...of) * 1000).slice(0, 8) }, ...names.map(line)],
      },
      data,
      element,
    )
    new ResizeObserver(
      ([
        {
          contentRect: { width },
        },
      ]) => plot.setSize({ width, height }),
    ).observe(element)
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => plot.redraw(false))
    return plot
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
        (focused.isConnected ? focused : (old.querySelector('[tabindex]') ?? byId('main'))).focus({
          preventScroll: true,
        })
    }
    drawCharts()
  }
  function broken() {
    if (isFull) return
    brokenAt ??= lastAt
    say('The connection is lost: the page shows the state of ' + clock(brokenAt) + '. It tries again.')
  }
  function later(work, ms) {
    clearTimeout(timer)
    timer = setTimeout(() => work(), ms)
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
    later(retry, 30000)
    source.onmessage = ({ data }) => {
      const { at, parts } = JSON.parse(data)
      lastAt = at
      brokenAt = undefined
      for (const { id, html } of parts) waiting.set(id, html)
      apply()
      say('Live')
      updated.textContent = 'Updated ' + clock(at)
      later(retry, 30000)
    }
    source.onopen = () => {
      isFull = false
    }
    source.addEventListener('full', ({ data }) => {
      isFull = true
      later(retry, 30000)
      say(
        'Too many pages are open: ' +
          data +
          ' others get updates, and this one shows the state of ' +
          clock(lastAt) +
          '. Close one of them. This page tries again.',
      )
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
      later(open, 10000)
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
  document.addEventListener('click', ({ target }) => {
    const copy = target.closest('.copy')
    if (copy) void copyBeside(copy)
  })
  async function copyBeside(copy) {
    const code = copy.previousElementSibling
    // Without TLS a browser has no clipboard API, except on loopback.
    const isCopied =
      (await navigator.clipboard?.writeText(code.textContent).then(
        () => true,
        () => false,
      )) || copySelected(code)
    byId('copied').textContent = copy.textContent = isCopied ? 'Copied' : 'Selected: copy it now'
    setTimeout(() => {
      byId('copied').textContent = ''
      copy.textContent = 'Copy'
    }, 3000)
  }
  function copySelected(element) {
    const selection = getSelection()
    selection.selectAllChildren(element)
    const isCopied = document.execCommand('copy')
    if (isCopied) selection.empty()
    return isCopied
  }
  document.addEventListener('visibilitychange', open)
  document.addEventListener('selectionchange', () => {
    if (getSelection().isCollapsed) apply()
  })
  addEventListener('pagehide', close)
  addEventListener('pageshow', ({ persisted }) => {
    if (persisted) open()
  })
  bar.hidden = false
  drawCharts()
  open()
})()
