// With MemberImportVisibility, an app would otherwise have to import HTTPTypes to set a single header field.
@_exported public import HTTPTypes
