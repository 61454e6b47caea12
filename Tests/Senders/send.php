<?php
// Sends the form in FORM.json with PHP: php send.php FORM.json URL. Its curl has no repeated names, so that the body is
// written here, as scripts do that send with file_get_contents.
[, $path, $url] = $argv;
$form = json_decode(file_get_contents($path), true);
$boundary = bin2hex(random_bytes(16));
$quoted = fn(string $text) => str_replace(['"', "\r", "\n"], ['%22', '%0D', '%0A'], $text);
$body = '';
foreach ($form['fields'] as [$name, $value]) {
    $body .= "--$boundary\r\nContent-Disposition: form-data; name=\"{$quoted($name)}\"\r\n\r\n$value\r\n";
}
foreach ($form['files'] as $file) {
    $body .= "--$boundary\r\nContent-Disposition: form-data; name=\"{$quoted($file['name'])}\"; "
        . "filename=\"{$quoted($file['filename'])}\"\r\nContent-Type: {$file['type']}\r\n\r\n"
        . file_get_contents($file['path']) . "\r\n";
}
echo file_get_contents($url, false, stream_context_create(['http' => [
    'method' => 'POST', 'content' => "$body--$boundary--\r\n", 'ignore_errors' => true,
    'header' => "Content-Type: multipart/form-data; boundary=$boundary",
]]));
