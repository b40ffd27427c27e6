-- Asks the gateway about a request, and responds to the client unless the gateway allows it.

local check_url = 'http://127.0.0.1:8080/.gatehouse/forward-auth'

-- These headers reach the wiki with the value of the gateway, or not at all.
local identity = { 'x-remote-user', 'x-groups', 'cookie' }

-- Fields of the connection, and fields that this file writes itself.
local omitted = {
  ['connection'] = true, ['keep-alive'] = true, ['upgrade'] = true, ['te'] = true, ['trailer'] = true,
  ['transfer-encoding'] = true, ['content-length'] = true, ['expect'] = true,
}

local function ask(txn)
  local fields = {}
  for name, values in pairs(txn.http:req_get_headers()) do
    if not omitted[name] then
      local list = {}
      for index = 0, #values do list[#list + 1] = values[index] end
      fields[name] = list
    end
  end
  fields['x-forwarded-method'] = { txn.sf:method() }
  fields['x-forwarded-proto'] = { txn.f:ssl_fc() == 1 and 'https' or 'http' }
  fields['x-forwarded-host'] = { txn.sf:req_hdr('host') }
  fields['x-forwarded-uri'] = { txn.sf:pathq() }
  fields['x-forwarded-for'] = { txn.sf:src() }
  return core.httpclient():get({ url = check_url, headers = fields, timeout = 5000 })
end

local function refuse(txn, response)
  local reply = txn:reply()
  reply:set_status(response.status)
  for name, values in pairs(response.headers or {}) do
    if name ~= 'connection' and name ~= 'content-length' and name ~= 'transfer-encoding' then
      for _, value in pairs(values) do reply:add_header(name, value) end
    end
  end
  if response.body then reply:set_body(response.body) end
  txn:done(reply)
end

core.register_action('gatehouse', { 'http-req' }, function(txn)
  local response = ask(txn)
  if response == nil or response.status == nil or response.status < 200 then
    return refuse(txn, { status = 503 })
  end
  if response.status ~= 200 then return refuse(txn, response) end

  local removed = response.headers['x-envoy-auth-headers-to-remove']
  for name in string.gmatch(removed and removed[0] or '', '[^, ]+') do txn.http:req_del_header(name) end
  for _, name in ipairs(identity) do
    txn.http:req_del_header(name)
    local values = response.headers[name]
    if values then txn.http:req_set_header(name, values[0]) end
  end
  local cookies = response.headers['set-cookie']
  if cookies then txn:set_var('txn.gatehouse_cookie', cookies[0]) end
end)
