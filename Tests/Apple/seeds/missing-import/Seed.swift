// ios: is not available due to missing import of defining module 'HTTPTypes'
func canonicalName() -> String { seededField.canonicalName }
