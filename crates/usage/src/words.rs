/// Defines an enum whose values stand as one word each in JSON, in the store and in hashes. Only the word is read back: the
/// derived reader would also take `{"word": null}`.
macro_rules! words {
    ($(#[$doc:meta])* $vis:vis enum $name:ident { $($(#[$value_doc:meta])* $value:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis enum $name {
            $($(#[$value_doc])* $value,)*
        }

        impl $name {
            pub const ALL: &'static [Self] = &[$(Self::$value),*];

            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$value => $word,)*
                }
            }

            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.as_str() == word)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str($crate::ids::TextVisitor(|word: &str| {
                    Self::parse(word).ok_or_else(|| {
                        let known: Vec<&str> = Self::ALL.iter().map(|value| value.as_str()).collect();
                        format!("unknown_value: the value is none of {}", known.join(", "))
                    })
                }))
            }
        }
    };
}

pub(crate) use words;
