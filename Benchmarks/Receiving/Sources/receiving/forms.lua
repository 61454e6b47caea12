-- A form of three fields and a picture, over and over, for wrk. The picture's path is the script's first argument.
local boundary = "----postcard-receiving-7d1f0c"
local text

local function field(name, value)
   return "--" .. boundary .. '\r\nContent-Disposition: form-data; name="' .. name .. '"\r\n\r\n' .. value .. "\r\n"
end

function init(arguments)
   local file = assert(io.open(arguments[1], "rb"))
   local picture = file:read("*a")
   file:close()
   local body = field("name", "초코") .. field("kind", "dog") .. field("message", "안녕하세요, 제주에서")
      .. "--" .. boundary .. '\r\nContent-Disposition: form-data; name="picture"; filename="picture.jpg"\r\n'
      .. "Content-Type: image/jpeg\r\n\r\n" .. picture .. "\r\n--" .. boundary .. "--\r\n"
   wrk.headers["Content-Type"] = "multipart/form-data; boundary=" .. boundary
   text = wrk.format("POST", nil, nil, body)
end

function request()
   return text
end

function done(summary, latency)
   local errors = summary.errors
   local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
   -- The last three in microseconds.
   io.write(string.format("figures %d %d %d %d %d\n", summary.requests, failed, summary.duration,
      latency:percentile(50), latency:percentile(99)))
end
