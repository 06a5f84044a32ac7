(** The checker as a program: whole numbers become those of Zarith. *)

From Coq Require Import ZArith Extraction ExtrOcamlBasic.
From Mipforest Require Import checker.

Extract Inductive positive => "Big.t" [ "(fun n -> Big.succ (Big.shift_left n 1))" "(fun n -> Big.shift_left n 1)" "Big.one" ]
  "(fun odd even one n -> if Big.equal n Big.one then one () else
     let half = Big.shift_right n 1 in if Big.testbit n 0 then odd half else even half)".
Extract Inductive Z => "Big.t" [ "Big.zero" "(fun n -> n)" "Big.neg" ]
  "(fun zero above below n -> let s = Big.sign n in if s = 0 then zero () else if s > 0 then above n else below (Big.neg n))".
Extract Constant Z.add => "Big.add".
Extract Constant Z.sub => "Big.sub".
Extract Constant Z.mul => "Big.mul".
Extract Constant Z.opp => "Big.neg".
Extract Constant Z.min => "Big.min".
Extract Constant Z.leb => "Big.leq".
Extract Constant Z.ltb => "Big.lt".
Extract Constant Z.eqb => "Big.equal".
Extract Constant Z.div => "Big.fdiv".

Extraction "verified.ml" check value.
