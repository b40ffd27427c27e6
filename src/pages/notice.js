;(() => {
  const texts = TEXTS
  const { prefix, name, commonPrefix } = SCOPE
  if (document.documentElement.dataset.gatehouse) return
  document.documentElement.dataset.gatehouse = 'on'
  const warnBefore = Number(document.currentScript?.dataset.warnBefore || 120)
  const warnMs = warnBefore === 0 ? -Infinity : 1000 * (warnBefore > 0 ? warnBefore : 120)
  const signIn = prefix + 'sign-in?return_to=' + encodeURIComponent(commonPrefix + 'signed-in')
  const channel = new BroadcastChannel(name)
  let state = 'unknown'
  let isLeader = false
  let source, last, person, timer, retry, notice, text

  const emit = (name, detail) =>
    document.dispatchEvent(new CustomEvent('gatehouse:' + name, { detail, cancelable: true }))
  const say = (words) => {
    if (text && text.textContent !== words) text.textContent = words
  }
  const hide = () => {
    if (notice) notice.remove()
    notice = text = undefined
  }
  const element = (name, parent, words, attributes = {}) => {
    const made = document.createElement(name)
    for (const key in attributes) made.setAttribute(key, attributes[key])
    made.textContent = words
    parent.append(made)
    return made
  }
  const button = (box, words, act) => {
    element('button', box, words, { type: 'button' }).onclick = act
  }
  const signInLink = (box) => {
    element('a', box, texts.renew, { href: signIn, target: '_blank', rel: 'noopener' }).onclick = openSignIn
  }
  const show = (words, addAction) => {
    hide()
    notice = document.createElement('div')
    const root = notice.attachShadow({ mode: 'open' })
    const sheet = new CSSStyleSheet()
    sheet.replaceSync(STYLE)
    root.adoptedStyleSheets = [sheet]
    const box = element('section', root, '', { lang: texts.lang, dir: texts.dir, 'aria-label': texts.label })
    text = element('p', box, '', { role: 'alert' })
    addAction(box)
    element('button', box, texts.close, { type: 'button', class: 'second' }).onclick = hide
    document.body.append(notice)
    say(words)
  }
  const leftText = () => texts.expiring.replace('{n}', Math.max(1, Math.ceil((last.endsAt - Date.now()) / 60000)))

  // If the browser blocks the window, the link opens a tab.
  const openSignIn = (event) => {
    if (isEmbedded()) return signInForFrame(event, signIn, commonPrefix + 'signed-in', () => send('connect'))
    const opened = open('', 'gatehouse-sign-in', 'popup,width=500,height=700')
    if (!opened) return
    event.preventDefault()
    // Pages of other sites must not have a reference to this one. A second removal throws.
    try {
      opened.opener = null
    } catch {}
    opened.location.replace(signIn)
    opened.focus()
  }
  const stay = async () => {
    await fetch(prefix + 'session', { method: 'POST' }).catch(() => {})
    send('connect')
  }
  const expiring = () => {
    const { endsAt, canStay } = last
    if (emit('expiring', { expires_at: endsAt, can_stay: canStay, stay, sign_in: signIn }))
      show(leftText(), (box) => {
        if (canStay) button(box, texts.stay, stay)
        else signInLink(box)
      })
  }
  const ended = () => {
    const { reason } = last
    const words = reason === 'signed_in_elsewhere' ? texts.endedElsewhere : texts.ended
    if (emit('ended', { sign_in: signIn, reason })) show(words, signInLink)
  }
  const changed = () => {
    if (emit('changed', {})) show(texts.changed, (box) => button(box, texts.reload, () => location.reload()))
  }
  const tick = () => {
    clearTimeout(timer)
    const left = last.endsAt - Date.now()
    const next = left > warnMs ? 'signed_in' : last.canStay ? 'expiring' : 'last_minutes'
    if (next !== state) {
      const before = state
      state = next
      if (next !== 'signed_in') expiring()
      else if (before !== 'unknown' && before !== 'signed_out') {
        hide()
        emit('renewed', { expires_at: last.endsAt })
      }
    }
    if (state !== 'signed_in') say(leftText())
    timer = setTimeout(tick, Math.min(left > warnMs ? left - warnMs : 1000, 2 ** 30))
  }
  const learn = (message) => {
    const before = state
    const { isEnded, who = person } = (last = message)
    if (!isEnded && who === (person ??= who)) return tick()
    clearTimeout(timer)
    if (!isEnded) state = 'changed'
    else state = before === 'unknown' || before === 'signed_out' ? 'signed_out' : 'ended'
    if (state === before) return
    if (state === 'changed') changed()
    else if (state === 'ended') ended()
  }
  const tell = (message) => {
    learn(message)
    channel.postMessage(message)
  }
  const connect = () => {
    clearTimeout(retry)
    if (source) source.close()
    source = new EventSource(prefix + 'events')
    source.addEventListener('session', ({ data }) => {
      const { now, expires_at, absolute_expires_at, person: who } = JSON.parse(data)
      tell({ endsAt: Date.now() + expires_at - now, canStay: absolute_expires_at - expires_at > 1000, who })
    })
    source.addEventListener('ended', ({ data }) => {
      source.close()
      tell({ isEnded: true, reason: JSON.parse(data).reason })
    })
    source.onerror = () => {
      if (source.readyState === 2) retry = setTimeout(connect, 30000)
    }
  }
  const follow = (order) => {
    if (!isLeader) return
    if (order === 'connect' || last?.isEnded) connect()
    else if (last) channel.postMessage(last)
  }
  const send = (order) => {
    follow(order)
    channel.postMessage({ order })
  }
  channel.onmessage = ({ data }) => {
    if (data.order) follow(data.order)
    else learn(data)
  }
  // The page at the end of a sign-in does not know at which provider the pages are signed in.
  const commonName = 'gatehouse' + commonPrefix
  if (name !== commonName)
    new BroadcastChannel(commonName).onmessage = ({ data }) => {
      if (data.order) follow(data.order)
    }
  addEventListener('focus', () => {
    if (state === 'ended' || state === 'signed_out') send('connect')
  })
  const lead = () => {
    isLeader = true
    connect()
    return new Promise(() => {})
  }
  if (navigator.locks) {
    void navigator.locks.request(name, lead)
    channel.postMessage({ order: 'state' })
  } else void lead()
})()
