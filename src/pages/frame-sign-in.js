;(() => {
  const prefix = PREFIX
  const home = HOME
  if (!isEmbedded()) return
  const link = document.querySelector('a.first')
  const reload = () =>
    location.replace(location.pathname.startsWith(prefix) ? home : location.pathname + location.search)
  link.onclick = (event) => signInForFrame(event, link.href, prefix + 'signed-in', reload)
})()
