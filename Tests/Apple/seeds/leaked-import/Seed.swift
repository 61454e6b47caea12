// ios: uses an internal type
import HTTPTypes

public func seededFields() -> HTTPFields { HTTPFields() }
