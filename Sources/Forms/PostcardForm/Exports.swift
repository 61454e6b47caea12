// Lets an app set a header field without importing HTTPTypes, which MemberImportVisibility would require.
@_exported public import HTTPTypes
