//! Fields of a child that somebody else added by hand. Server-side apply leaves them alone, because it does not own them; so the operator
//! takes over their ownership first, and its next apply removes what it does not declare.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use serde_json::{Map, Value};

/// Parts of an object that the operator declares completely.
const DECLARED: [&str; 6] = ["f:spec", "f:data", "f:binaryData", "f:rules", "f:roleRef", "f:subjects"];

fn is_foreign(entry: &ManagedFieldsEntry, manager: &str) -> bool {
    let ours = entry.manager.as_deref() == Some(manager) && entry.operation.as_deref() == Some("Apply");
    // Controllers of Kubernetes write through subresources (status, scale); the next forced apply sets those fields right.
    let subresource = entry.subresource.as_deref().is_some_and(|s| !s.is_empty());
    let touches = entry
        .fields_v1
        .as_ref()
        .and_then(|f| f.0.as_object())
        .is_some_and(|fields| DECLARED.iter().any(|part| fields.contains_key(*part)));
    !ours && !subresource && touches
}

/// Whether somebody else owns fields in what `manager` declares completely.
pub fn has_foreign_fields(entries: &[ManagedFieldsEntry], manager: &str) -> bool {
    entries.iter().any(|entry| is_foreign(entry, manager))
}

/// The entries after `manager` took over the foreign ones.
pub fn taken_over(entries: &[ManagedFieldsEntry], manager: &str) -> Vec<ManagedFieldsEntry> {
    let mut fields = Map::new();
    let mut template = None;
    let mut rest = Vec::new();
    for entry in entries {
        let ours = entry.manager.as_deref() == Some(manager) && entry.operation.as_deref() == Some("Apply");
        if ours || is_foreign(entry, manager) {
            if let Some(set) = entry.fields_v1.as_ref().and_then(|f| f.0.as_object()) {
                unite(&mut fields, set);
            }
            if ours || template.is_none() {
                template = Some(entry.clone());
            }
        } else {
            rest.push(entry.clone());
        }
    }
    if let Some(mut entry) = template {
        entry.manager = Some(manager.to_owned());
        entry.operation = Some("Apply".to_owned());
        entry.subresource = None;
        entry.fields_v1 = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::FieldsV1(Value::Object(
            fields,
        )));
        rest.push(entry);
    }
    rest
}

fn unite(into: &mut Map<String, Value>, from: &Map<String, Value>) {
    for (key, value) in from {
        match (into.get_mut(key), value) {
            (Some(Value::Object(a)), Value::Object(b)) => unite(a, b),
            (Some(_), _) => {}
            (None, _) => {
                into.insert(key.clone(), value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::FieldsV1;
    use serde_json::json;

    fn entry(manager: &str, operation: &str, subresource: Option<&str>, fields: Value) -> ManagedFieldsEntry {
        ManagedFieldsEntry {
            manager: Some(manager.into()),
            operation: Some(operation.into()),
            subresource: subresource.map(Into::into),
            fields_v1: Some(FieldsV1(fields)),
            ..ManagedFieldsEntry::default()
        }
    }

    #[test]
    fn hand_edits_are_taken_over_and_controllers_are_not() {
        let entries = [
            entry("me", "Apply", None, json!({"f:spec": {"f:replicas": {}}})),
            entry("kubectl-edit", "Update", None, json!({"f:spec": {"f:paused": {}}})),
            entry(
                "kube-controller-manager",
                "Update",
                Some("status"),
                json!({"f:status": {}}),
            ),
            entry(
                "kube-controller-manager",
                "Update",
                None,
                json!({"f:metadata": {"f:annotations": {}}}),
            ),
        ];
        assert!(has_foreign_fields(&entries, "me"));
        let after = taken_over(&entries, "me");
        assert_eq!(after.len(), 3);
        let ours = after.iter().find(|e| e.manager.as_deref() == Some("me")).unwrap();
        assert_eq!(
            ours.fields_v1.as_ref().unwrap().0,
            json!({"f:spec": {"f:replicas": {}, "f:paused": {}}})
        );
        assert!(!has_foreign_fields(&after, "me"));
    }
}
