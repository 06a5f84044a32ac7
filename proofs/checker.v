(** A checker of lower bounds on the losses of univariate trees.

    The statement comes first: what a table is, what a tree loses, which trees are admitted. Then comes the checker, a
    function on the table and the lines of a certificate. [soundness.v] proves that a bound which it accepts is one. *)

From Coq Require Import ZArith List Bool Mergesort Orders.
Import ListNotations.
Open Scope Z_scope.

(** * The statement *)

(** Every double is a whole multiple of [2^-1074]. Features, costs, weights and thresholds are whole numbers of it. *)
Definition one : Z := 2 ^ 1074.

Record sample := Sample {
  features : list Z;
  class : nat;
  weight : Z }.

Record problem := Problem {
  samples : list sample;
  costs : list (list Z); (* by class of a sample, by predicted class *)
  split_cost : Z;
  depth : nat;
  least_size : Z; (* N_min *)
  unit : Z; (* what an objective of 1 loses *)
  bound : Z }.

(** Samples whose feature is below the threshold go left. *)
Inductive tree :=
  | Leaf (label : nat)
  | Split (feature : nat) (threshold : Z) (left right : tree).

Fixpoint levels (T : tree) : nat :=
  match T with Leaf _ => 0 | Split _ _ l r => S (Nat.max (levels l) (levels r)) end.

Fixpoint labels_below (K : nat) (T : tree) : Prop :=
  match T with Leaf k => (k < K)%nat | Split _ _ l r => labels_below K l /\ labels_below K r end.

Definition sum (l : list Z) : Z := fold_right Z.add 0 l.
Definition size {A} (l : list A) : Z := Z.of_nat (length l).

Section Statement.
Variable P : problem.

Definition n_classes : nat := length (costs P).
Definition loss_of (k : nat) (s : sample) : Z := weight s * nth k (nth (class s) (costs P) []) 0.
Definition goes_left (f : nat) (t : Z) (s : sample) : bool := nth f (features s) 0 <? t.

(** What a tree loses, in units of [2^-2148]: weights times costs, and what its splits cost. *)
Fixpoint loss (T : tree) (S : list sample) : Z :=
  match T with
  | Leaf k => sum (map (loss_of k) S)
  | Split f t l r =>
      split_cost P * one + loss l (filter (goes_left f t) S)
      + loss r (filter (fun s => negb (goes_left f t s)) S)
  end.

Fixpoint leaves_hold (m : Z) (T : tree) (S : list sample) : Prop :=
  match T with
  | Leaf _ => m <= size S
  | Split f t l r =>
      leaves_hold m l (filter (goes_left f t) S)
      /\ leaves_hold m r (filter (fun s => negb (goes_left f t s)) S)
  end.

Definition admitted (T : tree) : Prop :=
  (levels T <= depth P)%nat /\ labels_below n_classes T
  /\ (1 < least_size P -> leaves_hold (least_size P) T (samples P)).

(** No admitted tree has an objective below the bound: its loss over the unit is at least that. *)
Definition is_bound : Prop := forall T, admitted T -> bound P * unit P <= loss T (samples P).
End Statement.

(** * The checker *)

(** A row has the rank of a sample among the values of each feature, and whole losses by label, rounded down. *)
Record row := Row { at_ : list Z; lost : list Z }.

Definition rank (f : nat) (r : row) : Z := nth f (at_ r) 0.

Fixpoint vadd (a b : list Z) : list Z :=
  match a, b with x :: a', y :: b' => x + y :: vadd a' b' | _, _ => [] end.
Fixpoint vsub (a b : list Z) : list Z :=
  match a, b with x :: a', y :: b' => x - y :: vsub a' b' | _, _ => [] end.
Definition zeros (K : nat) : list Z := repeat 0 K.
Definition vsum (K : nat) (l : list (list Z)) : list Z := fold_left vadd l (zeros K).

(** The loss of a leaf with the best label, from the sums of its rows. *)
Definition leaf (sums : list Z) : Z :=
  match sums with [] => 0 | x :: more => fold_left Z.min more x end.

Definition lesser (best : option Z) (v : Z) : option Z :=
  match best with Some b => Some (Z.min b v) | None => Some v end.

(** [size], in one pass. *)
Definition count {A} (l : list A) : Z := fold_left (fun n _ => n + 1) l 0.

Section Checker.
Variables (K p : nat) (cost : Z) (last : list Z). (* of each feature, the greatest rank *)

(** A value of a row: its rank for the feature in whose order the rows are, and its losses. *)
Definition entry := (Z * list Z)%type.

Definition take (g : nat) (r : row) : entry := (rank g r, lost r).

(** Goes through rows in the order of a feature: the least loss of a split between two values, or [best]. *)
Fixpoint scan (m n : Z) (total : list Z) (l : list entry) (seen : Z) (before : list Z) (before_rank : Z)
    (best : option Z) : option Z :=
  match l with
  | [] => best
  | (r, x) :: more =>
      let better :=
        if (before_rank <? r) && (m <=? seen) && (m <=? n - seen)
        then lesser best (cost + leaf before + leaf (vsub total before)) else best in
      scan m n total more (seen + 1) (vadd before x) r better
  end.

(** The least loss of one leaf or one split on rows in the order of each feature; [None] if all leaves are too small. *)
Definition stump (m : Z) (columns : list (list entry)) : option Z :=
  let rows := hd [] columns in
  let n := count rows in
  let total := vsum K (map snd rows) in
  fold_left (fun best column => scan m n total column 0 (zeros K) (-1) best) columns
    (if m <=? n then Some (leaf total) else None).

(** Rows on one side of an interval of a feature. *)
Definition cut (f : nat) (keep : Z -> bool) (columns : list (list row)) : list (list row) :=
  map (filter (fun r => keep (rank f r))) columns.

(** Least size of leaves among rows beside an interval: those inside may be in any leaf. *)
Definition fewer (f : nat) (low high m : Z) (rows : list row) : Z :=
  let left_out := count (filter (fun r => (low <=? rank f r) && (rank f r <? high)) rows) in
  if 1 <? m - left_out then m - left_out else 0.

(** Rows in the order of each feature, with their rank for another feature first. *)
Definition tagged (f : nat) (columns : list (list row)) : list (list (Z * entry)) :=
  map (fun gc => map (fun r => (rank f r, take (fst gc) r)) (snd gc)) (combine (seq 0 p) columns).

Fixpoint select (keep : Z -> bool) (l : list (Z * entry)) : list entry :=
  match l with
  | [] => []
  | (r, e) :: more => if keep r then e :: select keep more else select keep more
  end.

Definition is_at_least (b : Z) (v : option Z) : bool := match v with Some v => b <=? v | None => true end.

(** Both sides of each interval have one split at most: their least losses are computed. *)
Fixpoint close (f : nat) (columns : list (list row)) (own : list (list (Z * entry))) (m b low most : Z)
    (highs : list Z) : bool :=
  match highs with
  | [] => most <? low
  | high :: more =>
      (low <=? high) && (high <=? most)
      && (let few := fewer f low high m (hd [] columns) in
          match stump few (map (select (fun r => r <? low)) own),
                stump few (map (select (fun r => high <=? r)) own) with
          | Some x, Some y => b <=? cost + x + y
          | _, _ => true
          end)
      && close f columns own m b (high + 1) most more
  end.

Definition claimed := list (list row) -> Z -> Z -> list (list Z) -> option (list (list Z)).

(** Both sides of each interval have a claim of their own, which [sub] checks. *)
Fixpoint intervals (fuel : nat) (sub : claimed) (f : nat) (columns : list (list row)) (m b low most : Z)
    (lines : list (list Z)) : option (list (list Z)) :=
  if most <? low then Some lines else
  match fuel, lines with
  | S fuel', [high; x] :: more =>
      if (low <=? high) && (high <=? most) then
        let few := fewer f low high m (hd [] columns) in
        match sub (cut f (fun r => r <? low) columns) few x more with
        | None => None
        | Some more =>
            match sub (cut f (fun r => high <=? r) columns) few (b - cost - x) more with
            | None => None
            | Some more => intervals fuel' sub f columns m b (high + 1) most more
            end
        end
      else None
  | _, _ => None
  end.

Fixpoint each_feature (check : nat -> Z -> list (list Z) -> option (list (list Z))) (f : nat) (most : list Z)
    (lines : list (list Z)) : option (list (list Z)) :=
  match most with
  | [] => Some lines
  | u :: more =>
      if u <? 1 then each_feature check (S f) more lines else
      match check f u lines with None => None | Some lines => each_feature check (S f) more lines end
  end.

(** Checks that every tree of [d] levels with leaves of at least [m] rows loses at least [b]; returns the lines behind. *)
Fixpoint claim (d : nat) (columns : list (list row)) (m b : Z) (lines : list (list Z)) : option (list (list Z)) :=
  let rows := hd [] columns in
  if (b <=? 0) || (count rows <? m) then Some lines else
  if negb (b <=? leaf (vsum K (map lost rows))) then None else
  match d with
  | O => Some lines
  | S d' =>
      match d' with
      | O =>
          let own := map (fun gc => map (take (fst gc)) (snd gc)) (combine (seq 0 p) columns) in
          if is_at_least b (stump m own) then Some lines else None
      | S O =>
          each_feature (fun f most lines =>
            match lines with
            | highs :: more => if close f columns (tagged f columns) m b 1 most highs then Some more else None
            | [] => None
            end) 0 last lines
      | S (S _) =>
          each_feature (fun f most lines =>
            match lines with
            | [_] :: more => intervals (Z.to_nat most) (claim d') f columns m b 1 most more
            | _ => None
            end) 0 last lines
      end
  end.
End Checker.

(** ** From a table to rows *)

Module ByKey <: TotalLeBool.
  Definition t := (Z * row)%type.
  Definition leb (a b : t) := fst a <=? fst b.
  Theorem leb_total : forall a b, leb a b = true \/ leb b a = true.
  Proof. intros a b. unfold leb. rewrite !Z.leb_le. destruct (Z.le_ge_cases (fst a) (fst b)); auto. Qed.
End ByKey.
Module Sorting := Sort ByKey.

(** Samples with their rows, in the order of a feature. *)
Definition sorted_by (f : nat) (pairs : list (sample * row)) : list (Z * row) :=
  Sorting.sort (map (fun sr => (nth f (features (fst sr)) 0, snd sr)) pairs).

(** Equal values have equal ranks, and greater ones greater ranks. *)
Definition follows (f : nat) (a b : Z * row) : bool :=
  ((fst a =? fst b) && (rank f (snd a) =? rank f (snd b)))
  || ((fst a <? fst b) && (rank f (snd a) <? rank f (snd b))).

Fixpoint is_ranked (f : nat) (l : list (Z * row)) : bool :=
  match l with
  | a :: ((b :: _) as more) => follows f a b && is_ranked f more
  | _ => true
  end.

Definition row_of (P : problem) (grid : Z) (s : sample) (ranks : list Z) : row :=
  Row ranks (map (fun k => loss_of P k s / grid) (seq 0 (n_classes P))).

(** Checks a bound with ranks of the samples, the greatest of each feature, the losses [2^q] in units of [2^-2148] that
    are one in the claims, and what is claimed. *)
Definition check (P : problem) (ranks : list (list Z)) (last : list Z) (q b : Z) (lines : list (list Z)) : bool :=
  let K := n_classes P in
  let p := length last in
  let grid := 2 ^ q in
  let pairs := map (fun sr => (fst sr, row_of P grid (fst sr) (snd sr))) (combine (samples P) ranks) in
  let sorted := map (fun f => sorted_by f pairs) (seq 0 p) in
  Nat.eqb (length (samples P)) (length ranks)
  && (0 <=? q) && Nat.ltb 0 p && Nat.ltb 0 K && (0 <=? split_cost P)
  && forallb (fun s => (0 <=? weight s) && Nat.eqb (length (features s)) p) (samples P)
  && forallb (forallb (fun c => 0 <=? c)) (costs P)
  && forallb (fun r => Nat.eqb (length r) p) ranks
  && forallb (fun r => forallb (fun xu => (0 <=? fst xu) && (fst xu <=? snd xu)) (combine r last)) ranks
  && forallb (fun fl => is_ranked (fst fl) (snd fl)) (combine (seq 0 p) sorted)
  && (bound P * unit P <=? b * grid)
  && match claim K p (split_cost P * one / grid) last (depth P) (map (map snd) sorted)
             (if 1 <? least_size P then least_size P else 0) b lines with
     | Some [] => true
     | _ => false
     end.

(** ** The value of a tree *)

(** A tree with the same splits, and with the labels that lose least on samples. *)
Fixpoint best_labels (P : problem) (T : tree) (S : list sample) : tree :=
  match T with
  | Leaf _ =>
      Leaf (fst (fold_left
        (fun best k => let v := sum (map (loss_of P k) S) in if v <? snd best then (k, v) else best)
        (seq 1 (n_classes P - 1)) (0%nat, sum (map (loss_of P 0%nat) S))))
  | Split f t l r =>
      Split f t (best_labels P l (filter (goes_left f t) S))
        (best_labels P r (filter (fun s => negb (goes_left f t s)) S))
  end.

Fixpoint all_hold (m : Z) (T : tree) (S : list sample) : bool :=
  match T with
  | Leaf _ => m <=? count S
  | Split f t l r =>
      all_hold m l (filter (goes_left f t) S) && all_hold m r (filter (fun s => negb (goes_left f t s)) S)
  end.

(** The loss of splits with their best labels, if that tree is admitted. *)
Definition value (P : problem) (T : tree) : option Z :=
  let best := best_labels P T (samples P) in
  if Nat.leb (levels best) (depth P) && Nat.ltb 0 (n_classes P)
     && (negb (1 <? least_size P) || all_hold (least_size P) best (samples P))
  then Some (loss P best (samples P)) else None.
