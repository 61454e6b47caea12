import HTTPTypes

let seededField = HTTPField.Name.uploadOffset
