<?php
// Answers what PHP makes of a posted form, in the words of receive.py. PHP has its ways with names: a dot or a space in
// one becomes `_`, and of fields with one name it keeps the last, unless that name ends in `[]`.
$fields = $files = [];
foreach ($_POST as $name => $values) {
    foreach ((array) $values as $value) {
        $fields[] = ['name' => is_array($values) ? "{$name}[]" : $name, 'value' => $value];
    }
}
foreach ($_FILES as $name => $file) {
    foreach ((array) $file['name'] as $number => $filename) {
        ['type' => [$number => $type], 'tmp_name' => [$number => $path], 'error' => [$number => $error]]
            = array_map(fn ($value) => (array) $value, $file);
        $files[] = [
            'name' => is_array($file['name']) ? "{$name}[]" : $name, 'filename' => $filename, 'contentType' => $type,
            'size' => $error ? null : filesize($path), 'sha256' => $error ? null : hash_file('sha256', $path),
        ];
    }
}
header('Content-Type: application/json');
echo json_encode(['fields' => $fields, 'files' => $files], JSON_UNESCAPED_UNICODE | JSON_THROW_ON_ERROR);
